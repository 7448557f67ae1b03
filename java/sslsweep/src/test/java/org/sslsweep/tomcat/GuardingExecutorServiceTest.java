package org.sslsweep.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.sslsweep.Guard;
import org.sslsweep.TaskHooks;
import org.sslsweep.ThreadHygiene;
import org.sslsweep.leaver.Leaver;

class GuardingExecutorServiceTest {
    @BeforeAll
    static void loadLibcrypto() throws InterruptedException {
        Libcrypto.load();
    }

    private static WorkerHooks hooks(String label) {
        return new WorkerHooks(new ConnectorLabels(label), Phase.TASK);
    }

    /** As a full pool with CallerRunsPolicy does. */
    @SuppressWarnings("try") // The guard is there to be closed.
    @Test
    void aTaskThatRunsInTheCallerLeavesTheCallersTaskAlone() throws Exception {
        GuardingExecutorService executor = new GuardingExecutorService(Runnable::run, hooks("in caller"));
        int caller = TaskHooks.label("caller");
        TaskHooks.enterRoot(caller);
        Leaver.leave(1);
        try (Guard guard = ThreadHygiene.guard("caller's guard")) {
            Leaver.leave(2);
            executor.execute(() -> Leaver.leave(3));
            Leaver.leave(4);
        }
        Leaver.leave(5);
        executor.execute(() -> Leaver.leave(1));
        TaskHooks.exitRoot();
        assertEquals(0, ThreadHygiene.queueDepth());
        assertEquals(4, Ledger.leftovers("in caller/task"));
        assertEquals(6, Ledger.leftovers("caller's guard"));
        assertEquals(6, Ledger.leftovers("caller"));
        assertEquals(2, Ledger.tasks("in caller/task"));
        assertEquals(1, Ledger.tasks("caller's guard"));
        assertEquals(1, Ledger.tasks("caller"));
    }
}
