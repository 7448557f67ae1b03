package org.sslsweep.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ConnectorLabelsTest {
    @ParameterizedTest
    @CsvSource({
        "https-openssl-nio-8443,                8443, https-openssl-nio-8443",
        "https-openssl-nio2-127.0.0.1-8443,     8443, https-openssl-nio2-8443",
        "https-openssl-apr-0:0:0:0:0:0:0:1-443,  443, https-openssl-apr-443",
        "https-opensslffm-nio-auto-1,              0, https-opensslffm-nio-auto",
        "https-opensslffm-nio-auto-2-43211,        0, https-opensslffm-nio-auto",
        "https-jsse-nio-/run/tomcat-nio-1.socket, -1, https-jsse-nio-local",
        "something else,                        8443, something else-8443",
    })
    void beginsWithProtocolAndPort(String name, int port, String base) {
        assertEquals(base, ConnectorLabels.base(ConnectorLabels.DEFAULT_PATTERN, name, port));
    }

    @Test
    void takesTextAndPlaceholders() {
        String name = "https-openssl-nio-127.0.0.1-8443";
        assertEquals("shop", ConnectorLabels.base("shop", name, 8443));
        assertEquals("shop 8443 on " + name, ConnectorLabels.base("shop {port} on {name}", name, 8443));
        assertEquals("$1\\https-openssl-nio", ConnectorLabels.base("$1\\{protocol}", name, 8443));
    }

    @ParameterizedTest
    @ValueSource(strings = {"{Port}", "{}", "{port", "port}", "{{port}}", "{host}-{port}"})
    void saysWhatAPatternMayHold(String pattern) {
        String message = assertThrows(IllegalArgumentException.class,
                () -> ConnectorLabels.base(pattern, "https-openssl-nio-8443", 8443)).getMessage();
        assertTrue(message.contains(pattern) && message.contains("{name}, {protocol} and {port}"), message);
    }

    @Test
    void givesEveryPhaseALabelOfItsOwn() {
        ConnectorLabels labels = new ConnectorLabels("labels test");
        int[] phases = Arrays.stream(Phase.values()).mapToInt(labels::of).toArray();
        assertEquals(Phase.values().length, Arrays.stream(phases).distinct().count());
        assertEquals(labels.of(Phase.READ), new ConnectorLabels("labels test").of(Phase.READ));
    }
}
