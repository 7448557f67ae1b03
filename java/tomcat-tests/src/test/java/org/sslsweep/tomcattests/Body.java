package org.sslsweep.tomcattests;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Random;

/** A body of random bytes, the same ones each time, with a number in each block: no two blocks are alike. */
final class Body {
    private static final int BLOCK = 64 * 1024;

    private final long length;
    private final byte[] pattern = new byte[BLOCK];

    Body(long length) {
        this.length = length;
        new Random(length).nextBytes(pattern);
    }

    long length() {
        return length;
    }

    void writeTo(OutputStream out) throws IOException {
        blocks(out::write);
    }

    /** What the servlet answers that has read it. */
    String digest() {
        try {
            MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
            blocks(sha256::update);
            return length + " " + HexFormat.of().formatHex(sha256.digest());
        } catch (IOException | NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    private interface Sink {
        void take(byte[] bytes, int from, int count) throws IOException;
    }

    private void blocks(Sink sink) throws IOException {
        byte[] block = pattern.clone();
        long left = length;
        for (long number = 0; left > 0; number++) {
            ByteBuffer.wrap(block).putLong(0, number);
            int count = (int) Math.min(left, BLOCK);
            sink.take(block, 0, count);
            left -= count;
        }
    }
}
