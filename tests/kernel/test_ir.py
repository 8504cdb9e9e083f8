"""The text of a kernel is one screen that can be read."""

from __future__ import annotations

from jumar.base import f32
from jumar.kernel import Builder, statements


def test_the_text_of_a_kernel_reads_like_a_program() -> None:
    k = Builder("relu")
    x, y, n = k.pointer("x", f32), k.pointer("y", f32), k.integer("n")
    total = k.var(0.0, f32, 8)
    with k.loop(0, n - 7, 8) as i:
        v = k.load(x, i, 8)
        r = k.maximum(v, 0.0)
        total.set(k.fma(r, 2.0, total.get()))
        k.store(r, y, i, aligned=True)
    with k.when(k.chunk == 0):
        k.store(k.reduce(total.get(), "add"), y, n)
    with k.otherwise():
        k.prefetch(x, n)
    assert str(k.finish()) == (
        """\
kernel relu args(%x: f32*, %y: f32*, %n: i64):
  var %6: f32x8 = 0.0:f32x8
  %7: i64 = sub %n 7
  for %8 in 0 .. %7 step 8:
    %9: f32x8 = load{4} %x %8
    %10: f32x8 = max %9 0.0:f32x8
    %11: f32x8 = get %6
    %12: f32x8 = fma %10 2.0:f32x8 %11
    %6 := %12
    store %10 to %y %8 align 32
  %13: bool = eq %chunk 0
  if %13:
    %14: f32x8 = get %6
    %15: f32x4 = shuffle{(0, 1, 2, 3)} %14 %14
    %16: f32x4 = shuffle{(4, 5, 6, 7)} %14 %14
    %17: f32x4 = add %15 %16
    %18: f32x2 = shuffle{(0, 1)} %17 %17
    %19: f32x2 = shuffle{(2, 3)} %17 %17
    %20: f32x2 = add %18 %19
    %21: f32 = extract{0} %20
    %22: f32 = extract{1} %20
    %23: f32 = add %21 %22
    store %23 to %y %n align 4
  else:
    prefetch{0, 3} %x %n"""
    )


def test_statements_walks_into_loops_and_branches() -> None:
    k = Builder("walk")
    x, n = k.pointer("x", f32), k.integer("n")
    with k.loop(0, n) as i, k.when(i > 3):
        k.store(1.0, x, i)
    kernel = k.finish()
    assert [type(s).__name__ for s in statements(kernel.body)] == ["Loop", "Let", "Branch", "Store"]


def test_equal_kernels_have_equal_text_and_compare_equal() -> None:
    def make() -> object:
        k = Builder("same")
        k.store(k.load(k.pointer("x", f32)) * 0.1, k.pointer("y", f32))
        return k.finish()

    assert make() == make() and str(make()) == str(make())
