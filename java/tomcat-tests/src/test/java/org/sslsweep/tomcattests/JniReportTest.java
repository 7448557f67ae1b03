package org.sslsweep.tomcattests;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

/** The control: a scan that finds nothing anywhere would pass every test. */
class JniReportTest {
    private static final String TCNATIVE = "WARNING: JNI local refs: 33, exceeds capacity: 32\n"
            + "\tat org.apache.tomcat.jni.SSL.getCiphers(Native Method)\n"
            + "\tat org.apache.tomcat.util.net.openssl.OpenSSLEngine.<clinit>(OpenSSLEngine.java:79)\n"
            + "\tat org.sslsweep.tomcat.SweepingUtil.x(SweepingUtil.java:1)\n";
    private static final String OURS = "WARNING in native method: JNI call made without checking exceptions when required"
            + " to from CallObjectMethod\n"
            + "\tat org.sslsweep.Natives.snapshot(Native Method)\n"
            + "\tat org.sslsweep.ThreadHygiene.snapshot(ThreadHygiene.java:1)\n";

    @Test
    void tellsWhoseWarningItIs() {
        JniReport report = new JniReport("a line of the log\n" + TCNATIVE + OURS + "another line\n" + TCNATIVE);
        assertEquals(3, report.all().size());
        assertEquals(List.of(OURS.strip()), report.ours());
    }

    @Test
    void aCrashIsAlwaysReported() {
        JniReport report = new JniReport("#\n# A fatal error has been detected by the Java Runtime Environment:\n#\n");
        assertEquals(1, report.ours().size());
        report = new JniReport("FATAL ERROR in native method: Non-array passed to JNI array operations\n"
                + "\tat org.apache.tomcat.jni.SSL.getCiphers(Native Method)\n");
        assertEquals(1, report.ours().size());
    }

    @Test
    void aLogWithoutWarningsHasNone() {
        assertEquals(List.of(), new JniReport("Nov 30, 2026 INFO: sslsweep: policy CLEAR\n").all());
    }
}
