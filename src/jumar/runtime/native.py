"""The thread pool and the step walker, in machine code: one call runs a whole Program.

In: a table of steps (executor.py).  Out: `pool().run(context, first, last)`.

One fork per run.  Every thread walks the table and takes chunks of each step: first those of its own range, then what others have left of
theirs; where the table asks for a barrier it waits until all chunks of the steps before are done.  So nobody waits for a THREAD: a worker
that is still asleep, or that the system gave no core, joins when it can, and a short run is over before it comes (on a busy machine a
barrier that counts threads takes as long as the scheduler's time slice).  Waiting threads spin, then yield (at a barrier) or sleep on a
futex (idle workers).
The code is LLVM IR text, compiled once per machine and kept in the cache on disk; a deployed package carries its object.

Why ranges.  Chunks of one step and of the next are parts of one image in one order, so a thread mostly reads what it has written itself:
from its own cache, and not from another core's, which takes 90 ns a round trip on one die and 420 across two.  A range's counter has a cache
line that others touch only when they come for the rest.

Two programs at once: the pool belongs to one run at a time.  A run that finds it taken does its steps on the calling thread alone,
and looks again before each step.  Waiting instead would idle a thread that is there anyway; a second pool would put more
threads than cores to work and make barriers wait for the scheduler.  With many callers, one thread each is what gives most.

Why it is right.  `tests/runtime/stress.py` looks for what this overlooks.

- One run at a time: only the holder of `busy` writes `job`, `left`, the counters, and opens the door.
- Nobody is in the wrong run: a worker comes in by a compare-and-swap of `door` that holds the sequence number it was called with;
  numbers do not come again (56 bits), and between runs the door is -1.  The swap acquires what the caller released by opening: the job,
  the cleared counters, all that earlier steps wrote.
- Nobody is left inside: the caller shuts the door, learns how many came in, and waits until as many have left.  So tables, arena and
  code may be freed or used again as soon as the run is over.
- A chunk is run once, and counts as done only after its kernel has returned: ranges do not overlap, the counter of a range hands out
  each number once; `done` is raised
  (release) after the thread's last chunk of the step.
- A step begins after all that it must wait for: at a barrier every thread waits by itself (acquire) for `done` of all steps since its
  barrier before, and those before that it has waited for there.  A late thread finds no chunks left and passes, holding nothing.
- Barriers between serial steps may be left out: thread 0 takes them in order.  executor.py sets one before the next step that is shared.
- It ends: of the first step that is not done, each chunk is in a kernel, or thread 0 is on its way to it; nobody who is needed waits for
  a later step.  Workers are not needed: a wake that is missed costs their help, not the run.
- A wake is not missed all the same: a worker raises `sleepers` and then has the system compare `gen`; the caller sets `gen` and then
  reads `sleepers`, all in one order (seq_cst).  The system compares 32 bits: after exactly 2^24 runs between two instructions
  of a worker, it sleeps through one more.

With the setting `pin` each worker is bound to a core of its own, from the second that the process may use; the caller's thread is the
user's and stays free.

Inside a run subnormal numbers are flushed to zero (they cost a hundred cycles each); the caller's mode is restored.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jumar.base import Store, config
from jumar.runtime.link import Code, link

MAX_THREADS = 64
MAX_RANGES = 8  # of a step's chunks: each thread looks through all of them before it goes on, so more threads share one
SPINS = 4000  # pauses, about 0.2 ms, before a thread at a barrier yields its core; an idle worker sleeps after five times that
# words of a context and of a step in the table
CONTEXT_STEPS, CONTEXT_COUNTERS, CONTEXT_THREADS, CONTEXT_TIMES, CONTEXT_SPINS, CONTEXT_DONE, CONTEXT_RANGES, CONTEXT_STRIDE = range(8)
CONTEXT_WORDS = 8
STEP_KERNEL, STEP_ARGS, STEP_CHUNKS, STEP_FLAGS, STEP_WORDS = 0, 1, 2, 3, 4
BARRIER, SERIAL = 1, 2  # flags: wait for the steps before; chunks on thread 0 only

_X86 = {
    "PAUSE": "call void @llvm.x86.sse2.pause()",
    "NOW": "%now = call i64 @llvm.readcyclecounter()",
    "FUTEX": "202",
    "AFFINITY": "203",
    "DECLARE": "declare void @llvm.x86.sse2.pause()\ndeclare i64 @llvm.readcyclecounter()\n"
    "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)",
    # bit 15 flushes results, bit 6 reads subnormals as zero
    "FLUSH": """  %slot = alloca i32
  %mode = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %slot)
  %old = load i32, ptr %slot
  %new = or i32 %old, 32832
  store i32 %new, ptr %mode
  call void @llvm.x86.sse.ldmxcsr(ptr %mode)""",
    "RESTORE": "  call void @llvm.x86.sse.ldmxcsr(ptr %slot)",
}
_ARM = {
    "PAUSE": "call void @llvm.aarch64.hint(i32 1)",
    # the cycle counter is closed to users; the generic timer (cntvct_el0) is open
    "NOW": '%now = call i64 @llvm.read_volatile_register.i64(metadata !{!"cntvct_el0"})',
    "FUTEX": "98",
    "AFFINITY": "122",
    "DECLARE": "declare void @llvm.aarch64.hint(i32)\ndeclare i64 @llvm.read_volatile_register.i64(metadata)\n"
    "declare i64 @llvm.aarch64.get.fpcr()\ndeclare void @llvm.aarch64.set.fpcr(i64)",
    "FLUSH": """  %old = call i64 @llvm.aarch64.get.fpcr()
  %new = or i64 %old, 16777216
  call void @llvm.aarch64.set.fpcr(i64 %new)""",
    "RESTORE": "  call void @llvm.aarch64.set.fpcr(i64 %old)",
}

_TEXT = """
; gen: sequence << 8 | threads of this run; a new value is the call to work.
; door: sequence << 8 | workers that came in while the run was open; -1 when no run is.  A worker that comes late finds another
; sequence or -1 and stays out, so it never reads a job that is not its own, and no run waits for a worker that did not come in.
@gen = internal global i64 0, align 128
@door = internal global i64 -1, align 128
@left = internal global i64 0, align 128
@sleepers = internal global i32 0, align 128
@busy = internal global i64 0, align 128
@workers = internal global i64 0, align 128
; pauses before an idle worker sleeps
@patience = internal global i64 0, align 128
@job = internal global [4 x i64] zeroinitializer, align 128
@seen = internal global [64 x i64] zeroinitializer, align 64
; whether workers are bound, and the core of each thread: negative for any
@bound = internal global i64 0
@cores = internal global [64 x i64] zeroinitializer, align 64
declare i32 @pthread_create(ptr, ptr, ptr, ptr) nounwind
declare i32 @pthread_sigmask(i32, ptr, ptr) nounwind
declare i64 @syscall(i64, ...) nounwind
declare i32 @sched_yield() nounwind
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
$DECLARE

define i64 @jumar_now() nounwind {
  $NOW
  ret i64 %now
}

; waits until the word is at least target: spins so often, then yields the core at each look
define internal void @wait(ptr %word, i64 %target, i64 %spins) nounwind {
entry:
  br label %spin
spin:
  %n = phi i64 [ 0, %entry ], [ %n1, %again ]
  %v = load atomic i64, ptr %word acquire, align 8
  %there = icmp sge i64 %v, %target
  br i1 %there, label %done, label %not
not:
  $PAUSE
  %n1 = add i64 %n, 1
  %long = icmp sgt i64 %n1, %spins
  br i1 %long, label %yield, label %again
yield:
  %r = call i32 @sched_yield()
  br label %again
again:
  br label %spin
done:
  ret void
}

define internal void @stamp(ptr %times, i64 %step, i64 %threads, i64 %tid, i64 %which) nounwind noinline {
  $NOW
  %a = mul i64 %step, %threads
  %b = add i64 %a, %tid
  %c = shl i64 %b, 1
  %d = add i64 %c, %which
  %p = getelementptr i64, ptr %times, i64 %d
  store i64 %now, ptr %p
  ret void
}

; all chunks of one step on this thread
define internal void @alone(ptr %kernel, ptr %args, i64 %chunks, i64 %tid) nounwind {
entry:
  %any = icmp sgt i64 %chunks, 0
  br i1 %any, label %next, label %out
next:
  %c = phi i64 [ 0, %entry ], [ %c1, %next ]
  call void %kernel(ptr %args, i64 %c, i64 %tid)
  %c1 = add i64 %c, 1
  %more = icmp slt i64 %c1, %chunks
  br i1 %more, label %next, label %out
out:
  ret void
}

; waits until the steps from .. to - 1 have all their chunks done
define internal void @settle(ptr %table, ptr %done, i64 %from, i64 %to, i64 %spins) nounwind {
entry:
  %any = icmp slt i64 %from, %to
  br i1 %any, label %next, label %out
next:
  %s = phi i64 [ %from, %entry ], [ %s1, %next ]
  %row = mul i64 %s, 4
  %q = getelementptr i64, ptr %table, i64 %row
  %q2 = getelementptr i64, ptr %q, i64 2
  %chunks = load i64, ptr %q2
  %word = getelementptr i64, ptr %done, i64 %s
  call void @wait(ptr %word, i64 %chunks, i64 %spins)
  %s1 = add i64 %s, 1
  %more = icmp slt i64 %s1, %to
  br i1 %more, label %next, label %out
out:
  ret void
}

; the steps first .. last - 1 as thread tid; `from` is the first step since the last barrier
define internal void @walk(ptr %ctx, i64 %first, i64 %last, i64 %tid) nounwind noinline {
entry:
  %table = load ptr, ptr %ctx
  %p1 = getelementptr i64, ptr %ctx, i64 1
  %counters = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %ctx, i64 2
  %threads = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %ctx, i64 3
  %times = load ptr, ptr %p3
  %timed = icmp ne ptr %times, null
  %p4 = getelementptr i64, ptr %ctx, i64 4
  %spins = load i64, ptr %p4
  %p5 = getelementptr i64, ptr %ctx, i64 5
  %done = load ptr, ptr %p5
  %p6 = getelementptr i64, ptr %ctx, i64 6
  %ranges = load i64, ptr %p6
  %p7 = getelementptr i64, ptr %ctx, i64 7
  %stride = load i64, ptr %p7
  %home = urem i64 %tid, %ranges
  %round = sub i64 %ranges, 1
  %caller = icmp eq i64 %tid, 0
  br label %step
step:
  %s = phi i64 [ %first, %entry ], [ %s1, %after ]
  %from = phi i64 [ %first, %entry ], [ %from2, %after ]
  %more = icmp slt i64 %s, %last
  br i1 %more, label %read, label %end.of.steps
read:
  %row = mul i64 %s, 4
  %q = getelementptr i64, ptr %table, i64 %row
  %kernel = load ptr, ptr %q
  %q1 = getelementptr i64, ptr %q, i64 1
  %args = load ptr, ptr %q1
  %q2 = getelementptr i64, ptr %q, i64 2
  %chunks = load i64, ptr %q2
  %q3 = getelementptr i64, ptr %q, i64 3
  %flags = load i64, ptr %q3
  %b = and i64 %flags, 1
  %fenced = icmp ne i64 %b, 0
  br i1 %fenced, label %barrier, label %ready
barrier:
  call void @settle(ptr %table, ptr %done, i64 %from, i64 %s, i64 %spins)
  br label %ready
ready:
  %from2 = phi i64 [ %from, %read ], [ %s, %barrier ]
  %finished = getelementptr i64, ptr %done, i64 %s
  br i1 %timed, label %start, label %work
start:
  call void @stamp(ptr %times, i64 %s, i64 %threads, i64 %tid, i64 0)
  br label %work
work:
  %f = and i64 %flags, 2
  %serial = icmp ne i64 %f, 0
  br i1 %serial, label %one, label %share
one:
  br i1 %caller, label %all, label %after
all:
  call void @alone(ptr %kernel, ptr %args, i64 %chunks, i64 0)
  store atomic i64 %chunks, ptr %finished release, align 8
  br label %worked
share:
  %own = getelementptr i64, ptr %counters, i64 %s
  br label %range
range:
  %visited = phi i64 [ 0, %share ], [ %visited1, %empty ]
  %before = phi i64 [ 0, %share ], [ %mine, %empty ]
  %r0 = add i64 %home, %visited
  %over = icmp sge i64 %r0, %ranges
  %r1 = sub i64 %r0, %ranges
  %r = select i1 %over, i64 %r1, i64 %r0
  ; range r is chunks begin .. end - 1: those from r / ranges of all on, rounded up
  %b0 = mul i64 %r, %chunks
  %b1 = add i64 %b0, %round
  %begin = udiv i64 %b1, %ranges
  %e1 = add i64 %b1, %chunks
  %end = udiv i64 %e1, %ranges
  %size = sub i64 %end, %begin
  %line = mul i64 %r, %stride
  %counter = getelementptr i64, ptr %own, i64 %line
  %seen = load atomic i64, ptr %counter monotonic, align 8
  %late = icmp sge i64 %seen, %size
  br i1 %late, label %empty, label %take
take:
  %sofar = phi i64 [ %before, %range ], [ %sofar1, %do ]
  %c = atomicrmw add ptr %counter, i64 1 monotonic
  %left = icmp slt i64 %c, %size
  br i1 %left, label %do, label %empty
do:
  %chunk = add i64 %begin, %c
  call void %kernel(ptr %args, i64 %chunk, i64 %tid)
  %sofar1 = add i64 %sofar, 1
  br label %take
empty:
  %mine = phi i64 [ %before, %range ], [ %sofar, %take ]
  %visited1 = add i64 %visited, 1
  %others = icmp slt i64 %visited1, %ranges
  br i1 %others, label %range, label %none
none:
  %some = icmp ne i64 %mine, 0
  br i1 %some, label %tell, label %after
tell:
  %d = atomicrmw add ptr %finished, i64 %mine release
  br label %worked
worked:
  br i1 %timed, label %stop, label %after
stop:
  call void @stamp(ptr %times, i64 %s, i64 %threads, i64 %tid, i64 1)
  br label %after
after:
  %s1 = add i64 %s, 1
  br label %step
end.of.steps:
  br i1 %caller, label %last.barrier, label %out
last.barrier:
  call void @settle(ptr %table, ptr %done, i64 %from, i64 %last, i64 %spins)
  br label %out
out:
  ret void
}

define internal ptr @worker(ptr %arg) nounwind {
entry:
  %tid = ptrtoint ptr %arg to i64
  %set = alloca [16 x i64]
  call void @llvm.memset.p0.i64(ptr %set, i8 -1, i64 128, i1 false)
  ; signals are for Python's threads, except those that a fault of our own raises (ILL TRAP BUS FPE SEGV)
  store i64 -1241, ptr %set
  %sig = call i32 @pthread_sigmask(i32 0, ptr %set, ptr null)
$FLUSH
  %place = getelementptr i64, ptr @seen, i64 %tid
  %seen0 = load i64, ptr %place
  %bound = load i64, ptr @bound
  %mine.place = getelementptr i64, ptr @cores, i64 %tid
  %core = load i64, ptr %mine.place
  %one = icmp sge i64 %core, 0
  %bind = icmp ne i64 %bound, 0
  %binds = and i1 %one, %bind
  br i1 %binds, label %settle.down, label %ready
settle.down:
  %cpus = alloca [16 x i64]
  call void @llvm.memset.p0.i64(ptr %cpus, i8 0, i64 128, i1 false)
  %word = lshr i64 %core, 6
  %bit = and i64 %core, 63
  %mask = shl i64 1, %bit
  %slot.of = getelementptr i64, ptr %cpus, i64 %word
  store i64 %mask, ptr %slot.of
  %b = call i64 (i64, ...) @syscall(i64 $AFFINITY, i64 0, i64 128, ptr %cpus)
  br label %ready
ready:
  br label %outer
outer:
  %last = phi i64 [ %seen0, %ready ], [ %g, %next ]
  br label %spin
spin:
  %n = phi i64 [ 0, %outer ], [ %n1, %again ], [ 0, %sleep ]
  %g = load atomic i64, ptr @gen acquire, align 8
  %new.job = icmp ne i64 %g, %last
  br i1 %new.job, label %go, label %idle
idle:
  $PAUSE
  %n1 = add i64 %n, 1
  %patience = load atomic i64, ptr @patience monotonic, align 8
  %long = icmp sgt i64 %n1, %patience
  br i1 %long, label %sleep, label %again
again:
  br label %spin
sleep:
  %x = atomicrmw add ptr @sleepers, i32 1 seq_cst
  %low = trunc i64 %last to i32
  %r = call i64 (i64, ...) @syscall(i64 $FUTEX, ptr @gen, i32 128, i32 %low, ptr null, ptr null, i32 0)
  %y = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  br label %spin
go:
  %count = and i64 %g, 255
  %mine = icmp slt i64 %tid, %count
  br i1 %mine, label %knock, label %next
knock:
  %door0 = load atomic i64, ptr @door acquire, align 8
  br label %enter
enter:
  %door = phi i64 [ %door0, %knock ], [ %now, %refused ]
  %open = ashr i64 %door, 8
  %call = ashr i64 %g, 8
  %same = icmp eq i64 %open, %call
  br i1 %same, label %come, label %next
come:
  %door1 = add i64 %door, 1
  %pair = cmpxchg ptr @door, i64 %door, i64 %door1 acq_rel acquire
  %now = extractvalue { i64, i1 } %pair, 0
  %in = extractvalue { i64, i1 } %pair, 1
  br i1 %in, label %run, label %refused
refused:
  br label %enter
run:
  %ctx = load ptr, ptr @job
  %j1 = getelementptr i64, ptr @job, i64 1
  %first = load i64, ptr %j1
  %j2 = getelementptr i64, ptr @job, i64 2
  %end = load i64, ptr %j2
  call void @walk(ptr %ctx, i64 %first, i64 %end, i64 %tid)
  %d = atomicrmw add ptr @left, i64 1 release
  br label %next
next:
  br label %outer
}

; workers that there are after trying to have `wanted` of them; only the holder of @busy comes here
define internal i64 @hire(i64 %wanted) nounwind noinline {
entry:
  %now = load i64, ptr @workers
  br label %look
look:
  %have = phi i64 [ %now, %entry ], [ %tid, %hired ]
  %enough = icmp sge i64 %have, %wanted
  br i1 %enough, label %out, label %make
make:
  %tid = add i64 %have, 1
  %g = load i64, ptr @gen
  %place = getelementptr i64, ptr @seen, i64 %tid
  store i64 %g, ptr %place
  %thread = alloca i64
  %arg = inttoptr i64 %tid to ptr
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %arg)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %hired, label %out
hired:
  store i64 %tid, ptr @workers
  br label %look
out:
  ret i64 %have
}

; the steps on all threads; only the holder of @busy comes here
define internal void @forked(ptr %ctx, i64 %first, i64 %last, i64 %threads) nounwind noinline {
entry:
  %wanted = sub i64 %threads, 1
  %now = load i64, ptr @workers
  %enough = icmp sge i64 %now, %wanted
  br i1 %enough, label %clear, label %hire
hire:
  %got = call i64 @hire(i64 %wanted)
  br label %clear
clear:
  %have0 = phi i64 [ %now, %entry ], [ %got, %hire ]
  %fewer = icmp slt i64 %have0, %wanted
  %others = select i1 %fewer, i64 %have0, i64 %wanted
  %n = add i64 %others, 1
  %p1 = getelementptr i64, ptr %ctx, i64 1
  %counters = load ptr, ptr %p1
  %p4 = getelementptr i64, ptr %ctx, i64 4
  %spins = load i64, ptr %p4
  %five = mul i64 %spins, 5
  store atomic i64 %five, ptr @patience monotonic, align 8
  %p5 = getelementptr i64, ptr %ctx, i64 5
  %done = load ptr, ptr %p5
  %p6 = getelementptr i64, ptr %ctx, i64 6
  %ranges = load i64, ptr %p6
  %p7 = getelementptr i64, ptr %ctx, i64 7
  %stride = load i64, ptr %p7
  %c0 = getelementptr i64, ptr %counters, i64 %first
  %d0 = getelementptr i64, ptr %done, i64 %first
  %steps = sub i64 %last, %first
  %nbytes = shl i64 %steps, 3
  br label %zero
zero:
  %range = phi i64 [ 0, %clear ], [ %range1, %zero ]
  %line = mul i64 %range, %stride
  %c1 = getelementptr i64, ptr %c0, i64 %line
  call void @llvm.memset.p0.i64(ptr align 8 %c1, i8 0, i64 %nbytes, i1 false)
  %range1 = add i64 %range, 1
  %rest = icmp slt i64 %range1, %ranges
  br i1 %rest, label %zero, label %post
post:
  call void @llvm.memset.p0.i64(ptr align 8 %d0, i8 0, i64 %nbytes, i1 false)
  store ptr %ctx, ptr @job
  %j1 = getelementptr i64, ptr @job, i64 1
  store i64 %first, ptr %j1
  %j2 = getelementptr i64, ptr @job, i64 2
  store i64 %last, ptr %j2
  store atomic i64 0, ptr @left monotonic, align 8
  %g0 = load atomic i64, ptr @gen monotonic, align 8
  %g1 = and i64 %g0, -256
  %g2 = add i64 %g1, 256
  %g3 = or i64 %g2, %n
  store atomic i64 %g2, ptr @door release, align 8
  %was = atomicrmw xchg ptr @gen, i64 %g3 seq_cst
  %s = load atomic i32, ptr @sleepers seq_cst, align 4
  %asleep = icmp ne i32 %s, 0
  br i1 %asleep, label %wake, label %walk
wake:
  %r = call i64 (i64, ...) @syscall(i64 $FUTEX, ptr @gen, i32 129, i32 2147483647, ptr null, ptr null, i32 0)
  br label %walk
walk:
  call void @walk(ptr %ctx, i64 %first, i64 %last, i64 0)
  %closed = atomicrmw xchg ptr @door, i64 -1 acq_rel
  %came = and i64 %closed, 255
  call void @wait(ptr @left, i64 %came, i64 %spins)
  ret void
}

; one step on this thread alone
define internal void @solo(ptr %ctx, i64 %s) nounwind {
entry:
  %table = load ptr, ptr %ctx
  %row = mul i64 %s, 4
  %q = getelementptr i64, ptr %table, i64 %row
  %kernel = load ptr, ptr %q
  %q1 = getelementptr i64, ptr %q, i64 1
  %args = load ptr, ptr %q1
  %q2 = getelementptr i64, ptr %q, i64 2
  %chunks = load i64, ptr %q2
  %p2 = getelementptr i64, ptr %ctx, i64 2
  %threads = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %ctx, i64 3
  %times = load ptr, ptr %p3
  %timed = icmp ne ptr %times, null
  br i1 %timed, label %start, label %work
start:
  call void @stamp(ptr %times, i64 %s, i64 %threads, i64 0, i64 0)
  br label %work
work:
  call void @alone(ptr %kernel, ptr %args, i64 %chunks, i64 0)
  br i1 %timed, label %stop, label %out
stop:
  call void @stamp(ptr %times, i64 %s, i64 %threads, i64 0, i64 1)
  br label %out
out:
  ret void
}

define void @jumar_run(ptr %ctx, i64 %first, i64 %last) nounwind {
entry:
$FLUSH
  %p2 = getelementptr i64, ptr %ctx, i64 2
  %threads = load i64, ptr %p2
  %many = icmp sgt i64 %threads, 1
  br label %look
look:
  %s = phi i64 [ %first, %entry ], [ %s1, %single ]
  %more = icmp slt i64 %s, %last
  br i1 %more, label %choose, label %out
choose:
  br i1 %many, label %try, label %single
try:
  %seen = load atomic i64, ptr @busy monotonic, align 8
  %taken = icmp ne i64 %seen, 0
  br i1 %taken, label %single, label %grab
grab:
  %pair = cmpxchg ptr @busy, i64 0, i64 1 acquire monotonic
  %got = extractvalue { i64, i1 } %pair, 1
  br i1 %got, label %fork, label %single
fork:
  call void @forked(ptr %ctx, i64 %s, i64 %last, i64 %threads)
  store atomic i64 0, ptr @busy release, align 8
  br label %out
single:
  call void @solo(ptr %ctx, i64 %s)
  %s1 = add i64 %s, 1
  br label %look
out:
$RESTORE
  ret void
}

; binds the workers that are hired from now on: cores has 64 numbers, the first is not used
define void @jumar_bind(ptr %cores) nounwind {
  call void @llvm.memcpy.p0.p0.i64(ptr @cores, ptr %cores, i64 512, i1 false)
  store i64 1, ptr @bound
  ret void
}

; in the child of a fork: the workers did not come along
define void @jumar_reset() nounwind {
  store i64 0, ptr @gen
  store i32 0, ptr @sleepers
  store i64 -1, ptr @door
  store i64 0, ptr @left
  store i64 0, ptr @workers
  store atomic i64 0, ptr @busy seq_cst, align 8
  ret void
}
"""


def pool_text(architecture: str) -> str:
    """LLVM IR of the pool for `x86_64` or `aarch64`."""
    text = _TEXT
    for name, value in (_ARM if architecture == "aarch64" else _X86).items():
        text = text.replace(f"${name}", value)
    return text


def pool_object(architecture: str = "") -> bytes:
    """Object code of the pool: from the cache on disk, else made by LLVM.   Goes into deployed packages."""
    architecture = architecture or platform.machine()
    text = pool_text(architecture)
    store = Store(config("cache_dir") / "native") if config("cache") else None
    key = _digest(f"{architecture}\n{text}")
    if store and (found := store.get(key)) is not None:
        return found
    import llvmlite.binding  # noqa: PLC0415  (only where code is made)

    llvm: Any = llvmlite.binding  # untyped

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(f"{architecture}-unknown-linux-gnu")
    machine = target.create_target_machine(opt=2, reloc="pic", codemodel="small")
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    made = bytes(machine.emit_object(module))
    if store:
        store.put(key, made)
    return made


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Pool:
    """The pool of this process.   run(context address, first, last); now() reads the cycle counter."""

    run: Callable[[int, int, int], None]
    now: Callable[[], int]
    code: Code


_lock = threading.Lock()
_shipped: list[bytes] = []  # the pool's object from a package, so that no compiler is needed
_pool: list[Pool] = []


def ship(object_bytes: bytes) -> None:
    """Gives the pool's object code before the first use; ignored after it."""
    _shipped[:] = [object_bytes]


def pool() -> Pool:
    """The pool; made at the first call.   Its threads start with the first run that wants more than one."""
    if not _pool:
        with _lock:
            if not _pool:
                _pool.append(_make())
    return _pool[0]


def _make() -> Pool:
    code = link({"pool": _shipped[0] if _shipped else pool_object()})
    code.keep = True  # workers run in it until the process ends
    found = code.functions["pool"]
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(found["jumar_run"])
    now = ctypes.CFUNCTYPE(ctypes.c_int64)(found["jumar_now"])
    reset = ctypes.CFUNCTYPE(None)(found["jumar_reset"])
    if config("pin") and hasattr(os, "sched_getaffinity"):
        cores = [core if core < 1024 else -1 for core in sorted(os.sched_getaffinity(0))][:MAX_THREADS]
        table = (ctypes.c_int64 * MAX_THREADS)(*cores, *(-1,) * (MAX_THREADS - len(cores)))
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(found["jumar_bind"])(table)
    os.register_at_fork(after_in_child=reset)
    return Pool(run, now, code)


@lru_cache(maxsize=1)
def cycles_per_us() -> float:
    """Rate of the counter that `now` reads, measured over 20 ms."""
    now = pool().now
    t0, c0 = time.perf_counter_ns(), now()
    while time.perf_counter_ns() - t0 < 20_000_000:
        pass
    t1, c1 = time.perf_counter_ns(), now()
    return (c1 - c0) * 1000.0 / (t1 - t0)
