package org.sslsweep.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.sslsweep.Policy;
import org.sslsweep.Release;

class ListenerSettingsTest {
    @Test
    void leavesTheProcessAsItIs() {
        ListenerSettings settings = new ListenerSettings(null, null, null, null, null);
        assertNull(settings.policy);
        assertNull(settings.release);
        assertEquals("{protocol}-{port}", settings.labelPattern);
        assertTrue(settings.jmx);
    }

    @ParameterizedTest
    @CsvSource({"clear,,CLEAR", "clear,false,CLEAR", "observe,,OBSERVE", "observe,true,OBSERVE", ",true,OBSERVE"})
    void takesPolicies(String policy, String observeOnly, Policy expected) {
        assertEquals(expected, new ListenerSettings(policy, observeOnly, null, null, null).policy);
    }

    @ParameterizedTest
    @CsvSource({"default,DEFAULT", "every-task,EVERY_TASK", "thread-exit,THREAD_EXIT", "park,PARK", "never,NEVER"})
    void takesReleases(String release, Release expected) {
        assertEquals(expected, new ListenerSettings(null, null, release, null, null).release);
    }

    @ParameterizedTest
    @CsvSource(nullValues = "-", value = {
        "Clear, -,   -,         -,      -,     policy=\"Clear\", \"clear\" (the default) or \"observe\"",
        "'',    -,   -,         -,      -,     policy=\"\", \"observe\"",
        "-,     yes, -,         -,      -,     observeOnly=\"yes\", \"true\" or \"false\"",
        "-,     -,   EveryTask, -,      -,     release=\"EveryTask\", \"every-task\"",
        "-,     -,   -,         {pord}, -,     label=\"{pord}\", {port}",
        "-,     -,   -,         -,      on,    jmx=\"on\", \"true\" or \"false\"",
        "clear, true,-,         -,      -,     observeOnly=\"true\", keep one",
    })
    void saysWhatIsAllowed(String policy, String observeOnly, String release, String label, String jmx, String named,
            String advice) {
        String message = assertThrows(IllegalArgumentException.class,
                () -> new ListenerSettings(policy, observeOnly, release, label, jmx)).getMessage();
        assertTrue(message.contains(named), message);
        assertTrue(message.contains(advice), message);
    }
}
