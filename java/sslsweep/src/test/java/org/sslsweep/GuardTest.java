package org.sslsweep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.sslsweep.leaver.Leaver;

/** Guards on the thread of the test. */
@SuppressWarnings("try") // Guards are there to be closed only.
class GuardTest {
    private static final Options ASSERT = Options.INHERITED.policy(Policy.ASSERT);

    @BeforeEach
    @AfterEach
    void cleanThread() {
        Leaver.drain();
        ThreadHygiene.setPolicy(Policy.CLEAR);
        ThreadHygiene.setRelease(Release.DEFAULT);
    }

    private static <T> T onAnotherThread(Callable<T> task) throws Exception {
        FutureTask<T> future = new FutureTask<>(task);
        Thread thread = new Thread(future, "another");
        thread.start();
        thread.join();
        return future.get();
    }

    @Test
    void clearsAndRecordsWhatATaskLeft() {
        try (Guard guard = ThreadHygiene.guard("guard: dirty")) {
            Leaver.leave(3);
            assertEquals(3, ThreadHygiene.queueDepth());
        }
        assertEquals(0, ThreadHygiene.queueDepth());
        ThreadHygiene.run("guard: dirty", () -> { });
        TaskEntry entry = Ledger.of("guard: dirty");
        assertEquals(2, entry.getTasks());
        assertEquals(1, entry.getDirtyTasks());
        assertEquals(3, entry.getLeftovers());
        assertFalse(entry.isAtLeast());
    }

    @Test
    void whatWasThereBeforeCountsAsArrivals() {
        Leaver.leave(2);
        ThreadHygiene.run("guard: before", () -> Leaver.leave(1));
        assertEquals(2, Ledger.arrivals("guard: before"));
        assertEquals(1, Ledger.leftovers("guard: before"));
    }

    @Test
    void creditsErrorsToTheInnermostTask() {
        try (Guard outer = ThreadHygiene.guard("guard: outer")) {
            Leaver.leave(1);
            try (Guard inner = ThreadHygiene.guard("guard: inner")) {
                Leaver.leave(2);
            }
            assertEquals(1, ThreadHygiene.queueDepth(), "the outer one's own");
        }
        assertEquals(1, Ledger.leftovers("guard: outer"));
        assertEquals(2, Ledger.leftovers("guard: inner"));
    }

    @Test
    void actsByThePolicyOfTheTask() {
        TaskLabel label = TaskLabel.of("guard: policies");
        try (Guard guard = ThreadHygiene.guard(label, Options.INHERITED.policy(Policy.OBSERVE))) {
            Leaver.leave(2);
        }
        assertEquals(2, ThreadHygiene.queueDepth(), "observed only");
        try (Guard guard = ThreadHygiene.guard(label, Options.INHERITED.policy(Policy.ROLL_BACK))) {
            Leaver.leave(3);
        }
        assertEquals(2, ThreadHygiene.queueDepth(), "back to what there was");
        ThreadHygiene.threadCleanup();
        assertEquals(0, ThreadHygiene.queueDepth());
    }

    @Test
    void tasksWithoutAPolicyTakeTheProcesss() {
        ThreadHygiene.setPolicy(Policy.OBSERVE);
        ThreadHygiene.run("guard: process's", () -> Leaver.leave(1));
        assertEquals(1, ThreadHygiene.queueDepth());
        assertEquals(Policy.OBSERVE, ThreadHygiene.policy());
        ThreadHygiene.setPolicy(Policy.CLEAR);
        ThreadHygiene.run("guard: process's", () -> Leaver.leave(1));
        assertEquals(0, ThreadHygiene.queueDepth());
    }

    @Test
    void optionsArePackedAsTheNativesReadThem() {
        assertEquals(0, Options.INHERITED.packed());
        for (Policy policy : Policy.values()) {
            for (Release release : Release.values()) {
                Options options = Options.INHERITED.release(release).policy(policy);
                assertEquals(policy.ordinal() | release.ordinal() << 2, options.packed());
                assertEquals(policy, options.policy());
                assertEquals(release, options.release());
                assertEquals(options, Options.INHERITED.policy(policy).release(release));
                assertFalse(Options.isAssert(options.packedForHooks()));
            }
        }
        ThreadHygiene.setPolicy(Policy.ROLL_BACK);
        ThreadHygiene.setRelease(Release.PARK);
        assertEquals(Release.PARK, ASSERT.release());
        assertEquals(Policy.ASSERT, ASSERT.policy());
        assertEquals(Policy.ROLL_BACK, Options.INHERITED.release(Release.NEVER).policy());
        assertEquals("policy ASSERT, release inherited", ASSERT.toString());
    }

    @Test
    void releasesTheThreadsStateWhenAskedTo() {
        for (Release release : Release.values()) {
            Options options = Options.INHERITED.release(release);
            try (Guard guard = ThreadHygiene.guard(TaskLabel.of("guard: release"), options)) {
                Leaver.leave(1);
            }
            // The queue of the thread that looks; on this line it is read in memory.
            assertTrue(ThreadHygiene.snapshot().contains("\"has_state\":" + (release != Release.EVERY_TASK)),
                    release::toString);
        }
    }

    @Test
    void assertFailsADirtyTask() {
        TaskLabel label = TaskLabel.of("guard: assert");
        try (Guard guard = ThreadHygiene.guard(label, ASSERT)) {
            assertEquals(0, ThreadHygiene.queueDepth());
        }
        DirtyTaskException dirty = assertThrows(DirtyTaskException.class, () -> {
            try (Guard guard = ThreadHygiene.guard(label, ASSERT)) {
                Leaver.leave(2);
            }
        });
        assertEquals(2, dirty.errors());
        assertEquals("guard: assert", dirty.label());
        assertTrue(dirty.getMessage().contains("\"guard: assert\" left 2 errors"), dirty.getMessage());
        assertEquals(0, ThreadHygiene.queueDepth());
        assertEquals(2, Ledger.leftovers("guard: assert"));
    }

    @Test
    void theTasksOwnExceptionWins() {
        ThreadHygiene.setPolicy(Policy.ASSERT);
        IllegalStateException own = new IllegalStateException("the task's own");
        IllegalStateException thrown = assertThrows(IllegalStateException.class,
                () -> ThreadHygiene.call("guard: own exception", () -> {
                    Leaver.leave(1);
                    throw own;
                }));
        assertSame(own, thrown);
        assertEquals(DirtyTaskException.class, thrown.getSuppressed()[0].getClass());
        assertThrows(DirtyTaskException.class, () -> ThreadHygiene.run("guard: own exception", () -> Leaver.leave(1)));
    }

    @Test
    void refusesToBeClosedTwice() {
        Guard guard = ThreadHygiene.guard("guard: twice");
        guard.close();
        String text = assertThrows(IllegalStateException.class, guard::close).getMessage();
        assertTrue(text.contains("closed already") && text.contains("\"guard: twice\""), text);
        assertEquals(1, Ledger.of("guard: twice").getTasks());
    }

    @Test
    void refusesToBeClosedOnAnotherThread() throws Exception {
        Guard guard = ThreadHygiene.guard("guard: elsewhere");
        Leaver.leave(1);
        // The other thread has a task of its own, as deep.
        String text = onAnotherThread(() -> ThreadHygiene.call("guard: elsewhere, other",
                () -> assertThrows(IllegalStateException.class, guard::close).getMessage()));
        assertEquals(1, Ledger.of("guard: elsewhere, other").getTasks());
        assertTrue(text.contains("(\"another\")") && text.contains("on the thread that made it"), text);
        assertEquals(1, ThreadHygiene.queueDepth());
        guard.close();
        assertEquals(0, ThreadHygiene.queueDepth());
        assertEquals(1, Ledger.leftovers("guard: elsewhere"));
    }

    @Test
    void aTaskEndsWithTheOneAroundIt() {
        Guard outer = ThreadHygiene.guard("guard: around");
        Guard inner = ThreadHygiene.guard("guard: forgotten");
        Leaver.leave(1);
        outer.close();
        assertEquals(0, ThreadHygiene.queueDepth());
        assertEquals(1, Ledger.leftovers("guard: forgotten"));
        String text = assertThrows(IllegalStateException.class, inner::close).getMessage();
        assertTrue(text.contains("before the guards around it"), text);
        // Nor does it end a later task in its place.
        try (Guard later = ThreadHygiene.guard("guard: later around")) {
            try (Guard in = ThreadHygiene.guard("guard: later")) {
                assertThrows(IllegalStateException.class, inner::close);
                Leaver.leave(1);
            }
        }
        assertEquals(1, Ledger.leftovers("guard: later"));
    }

    @Test
    void refusesWhatIsNotThere() {
        assertThrows(NullPointerException.class, () -> ThreadHygiene.guard((TaskLabel) null));
        assertThrows(NullPointerException.class, () -> ThreadHygiene.guard(TaskLabel.of("guard: null"), null));
        assertThrows(NullPointerException.class, () -> ThreadHygiene.setPolicy(null));
    }

    @Test
    void guardsBeyondTheDeepestAreClosedLikeOthers() {
        List<Guard> guards = new ArrayList<>();
        for (int depth = 0; depth < 100; depth++) {
            guards.add(ThreadHygiene.guard("guard: deep"));
        }
        Leaver.leave(1);
        for (int depth = 99; depth >= 0; depth--) {
            guards.get(depth).close();
        }
        assertThrows(IllegalStateException.class, guards.get(99)::close);
        assertEquals(1, Ledger.leftovers("guard: deep"), "credited to the innermost that has a guard");
        assertEquals(0, ThreadHygiene.queueDepth());
        ThreadHygiene.run("guard: after the deep", () -> Leaver.leave(1));
        assertEquals(0, ThreadHygiene.queueDepth());
    }

    @Test
    void namesTheConnection() {
        TaskLabel label = TaskLabel.of("guard: connection");
        try (Guard guard = ThreadHygiene.guard(label, Options.INHERITED, 4711)) {
            Leaver.leave(1);
        }
        for (String json : Natives.leftovers(Integer.MAX_VALUE)) {
            LeftoverEntry entry = Figures.leftover(json);
            if (entry.getLabel().equals("guard: connection")) {
                assertEquals(4711, entry.getConnection());
                assertTrue(entry.getThreadId() > 0);
                return;
            }
        }
        throw new AssertionError("no entry");
    }

    @Test
    void aRingThatWasFullIsSaidToBe() {
        ThreadHygiene.run("guard: full", () -> Leaver.leave(20));
        assertTrue(Ledger.of("guard: full").isAtLeast());
        assertEquals(15, Ledger.leftovers("guard: full"));
    }

    @Test
    void labelsAreCachedAndChecked() {
        assertSame(TaskLabel.of("guard: label"), TaskLabel.of(new StringBuilder("guard: label").toString()));
        assertEquals("guard: label", TaskLabel.of("guard: label").text());
        assertThrows(NullPointerException.class, () -> TaskLabel.of(null));
        assertTrue(assertThrows(IllegalArgumentException.class, () -> TaskLabel.of("")).getMessage().contains("empty"));
    }
}
