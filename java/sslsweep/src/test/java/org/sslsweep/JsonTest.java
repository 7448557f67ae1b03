package org.sslsweep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigInteger;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.sslsweep.leaver.Leaver;

/** The reader of the natives' JSON. */
class JsonTest {
    @Test
    void readsAllKindsOfValues() {
        assertEquals(Map.of("a", List.of(1L, -2L, 0L, 1.5, -2e3, true, false, "x"), "b", Map.of(), "c", List.of()),
                Json.parse(" {\"a\" : [1,-2,0,1.5,-2E+3,true , false,\"x\"],\n\t\"b\":{},\r\"c\":[]} "));
        assertEquals(Arrays.asList((Object) null), Json.parse("[null]"));
        assertEquals("\"\\/\b\f\n\r\t\u00e9\ud83d\ude00",
                Json.parse("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\ude00\""));
        assertEquals(Long.MAX_VALUE, Json.parse("9223372036854775807"));
        assertEquals(Long.MIN_VALUE, Json.parse("-9223372036854775808"));
        assertEquals(BigInteger.ONE.shiftLeft(64).subtract(BigInteger.ONE), Json.parse("18446744073709551615"));
        assertEquals(-0.0, Json.parse("-0.0"));
    }

    @Test
    void refusesWhatIsNone() {
        for (String text : new String[] {
            "", " ", "{", "}", "[", "]", "[1", "[1,]", "[,1]", "[1 2]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
            "{a:1}", "{1:1}", "{\"a\":1 \"b\":2}", "{\"a\":1,\"a\":2}",
            "\"", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"",
            "\"\\u\uff11\uff12\uff13\uff14\"", "\"a\nb\"", "01", "-", "+1", ".5", "1.", "1e", "1e+", "0x1",
            "--1", "NaN", "Infinity", "tru", "True", "nul", "truefalse", "1 2", "[]]", "// no\n1",
            "'a'", "\u00a01", "\ufeff1", "\u0661"
        }) {
            IllegalArgumentException error =
                    assertThrows(IllegalArgumentException.class, () -> Json.parse(text), () -> "read: " + text);
            assertTrue(error.getMessage().startsWith("no JSON, at character "), error.getMessage());
        }
    }

    @Test
    void refusesWhatIsTooDeepBeforeTheStackEnds() {
        assertEquals(1, ((List<?>) Json.parse("[".repeat(64) + "]".repeat(64))).size());
        for (String text : new String[] {"[", "{\"a\":", "[{\"a\":"}) {
            assertThrows(IllegalArgumentException.class, () -> Json.parse(text.repeat(1_000_000)));
        }
    }

    private static void readAll(String snapshot) {
        Figures figures = new Figures(snapshot);
        figures.findings();
        figures.libraries();
        figures.tasks();
        figures.threadStates();
        figures.sum("tasks");
    }

    /** Whatever is done to a snapshot, it is read or refused, and nothing else happens. */
    @Test
    void malformedTextsAreRefused() {
        ThreadHygiene.run("json: first", Leaver::drain);
        ThreadHygiene.run("json: \"quoted\\", () -> Leaver.leave(3));
        String snapshot = ThreadHygiene.snapshot();
        readAll(snapshot);
        String leftover = Natives.leftovers(1)[0];
        long seed = Long.getLong("json.seed", System.nanoTime());
        Random random = new Random(seed);
        String alphabet = "{}[]\",:\\u0123456789eE+-.truefalsn \n\u0000\ud800\uffff";
        int rounds = Integer.getInteger("json.rounds", 6_000);
        int refused = 0;
        for (int round = 0; round < rounds; round++) {
            StringBuilder text = new StringBuilder(round % 3 == 0 ? leftover : snapshot);
            for (int change = random.nextInt(4) + 1; change > 0 && text.length() > 0; change--) {
                int at = random.nextInt(text.length());
                char other = alphabet.charAt(random.nextInt(alphabet.length()));
                switch (random.nextInt(4)) {
                    case 0:
                        text.setCharAt(at, other);
                        break;
                    case 1:
                        text.insert(at, other);
                        break;
                    case 2:
                        text.deleteCharAt(at);
                        break;
                    default:
                        text.setLength(at);
                }
            }
            try {
                if (round % 3 == 0) {
                    Figures.leftover(text.toString());
                } else {
                    readAll(text.toString());
                }
            } catch (IllegalArgumentException expected) {
                refused++;
            } catch (RuntimeException | StackOverflowError wrong) {
                throw new AssertionError("seed " + seed + ", round " + round + ": " + text, wrong);
            }
        }
        assertTrue(refused > rounds / 2, "refused " + refused);
    }
}
