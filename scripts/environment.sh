# Sourced by demo, test and check: finds a Python, makes the virtual environment, installs.
# PYTHON: the interpreter to use; JUMAR_VENV: folder of the environment (default .venv beside README.md).

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="${JUMAR_VENV:-$root/.venv}"

fail() { printf '%s\n' "$@" >&2; exit 1; }

new_enough() { "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2])' >/dev/null 2>&1; }

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        command -v "$PYTHON" >/dev/null 2>&1 || fail "PYTHON=$PYTHON: there is no such program"
        new_enough "$PYTHON" || fail "PYTHON=$PYTHON is $("$PYTHON" --version 2>&1); Jumar needs Python 3.10 or newer"
        printf '%s' "$PYTHON"
        return
    fi
    local candidate
    for candidate in python3 python3.13 python3.12 python3.11 python3.10 python; do
        if command -v "$candidate" >/dev/null 2>&1 && new_enough "$candidate"; then
            printf '%s' "$candidate"
            return
        fi
    done
    fail "No Python 3.10 or newer found on PATH ($(python3 --version 2>&1 || true))." \
        "Install one (Debian, Ubuntu: apt install python3 python3-venv), or say which: PYTHON=/path/to/python3.12 $0"
}

make_environment() {
    if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        local python
        python="$(find_python)" || exit 1
        printf 'Making %s with %s\n' "$venv" "$("$python" --version 2>&1)"
        rm -rf "$venv"
        "$python" -m venv "$venv" >"$venv.log" 2>&1 || {
            cat "$venv.log" >&2
            rm -rf "$venv" "$venv.log"
            fail "" "This Python cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv"
        }
        rm -f "$venv.log"
    fi
    new_enough "$venv/bin/python" || fail "$venv holds $("$venv/bin/python" --version 2>&1); delete it and call again"
}

# install EXTRA...: Jumar itself, editable, with extras; `examples` brings PP-OCRv4 without its window-system needs
install() {
    local extras="" packages=() wanted
    for wanted in "$@"; do
        if [ "$wanted" = examples ]; then
            # the package asks for opencv-python, which needs libGL, and refuses Python 3.13 in its metadata only;
            # what it imports is listed here, and the package itself installed as it is
            packages+=(opencv-python-headless pyclipper shapely pyyaml pillow six tqdm onnxruntime scikit-learn)
        else
            extras="$extras,$wanted"
        fi
    done
    printf 'Installing Jumar%s into %s\n' "${*:+ with $*}" "$venv"
    extras="${extras#,}"
    pip_install -e "$root${extras:+[$extras]}" ${packages[@]+"${packages[@]}"}
    if [ ${#packages[@]} -gt 0 ]; then
        pip_install --no-deps --ignore-requires-python 'rapidocr-onnxruntime==1.4.4'
    fi
}

pip_install() {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "$@" || fail "pip could not install: $*"
}
