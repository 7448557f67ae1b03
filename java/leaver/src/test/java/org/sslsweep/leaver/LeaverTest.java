package org.sslsweep.leaver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

class LeaverTest {
    @Test
    void leavesAsManyErrorsAsItIsTold() {
        Leaver.leave(0);
        assertFalse(Leaver.isDirty());
        for (int count : new int[] {1, 2, Leaver.MOST}) {
            Leaver.leave(count);
            assertTrue(Leaver.isDirty());
            assertEquals(count, Leaver.drain());
            assertFalse(Leaver.isDirty());
        }
    }

    @Test
    void theQueueHoldsNoMoreThanItsMost() {
        Leaver.leave(Leaver.MOST + 5);
        assertEquals(Leaver.MOST, Leaver.drain());
    }

    @Test
    void eachThreadHasItsOwnQueue() throws InterruptedException {
        Leaver.leave(1);
        AtomicBoolean dirty = new AtomicBoolean(true);
        Thread other = new Thread(() -> dirty.set(Leaver.isDirty()));
        other.start();
        other.join();
        assertFalse(dirty.get());
        assertEquals(1, Leaver.drain());
    }

    @Test
    void refusesANegativeCount() {
        assertThrows(IllegalArgumentException.class, () -> Leaver.leave(-1));
    }
}
