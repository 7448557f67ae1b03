package org.sslsweep;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;

/** What the header of a file of the format ELF says, without loading it. */
final class ElfFile {
    private static final int HEADER = 64;
    private static final int SEGMENT = 56;
    private static final int LOADED = 1;

    /** The architecture that it is made for, as {@link Platform} names it; null where it is no such file. */
    final String architecture;
    /** Bytes that it must have: what is missing would kill the JVM when it is touched, long after loading. */
    final long neededSize;
    /** Bytes that it has. */
    final long size;

    private ElfFile(String architecture, long neededSize, long size) {
        this.architecture = architecture;
        this.neededSize = neededSize;
        this.size = size;
    }

    static ElfFile read(Path path) throws IOException {
        try (FileChannel file = FileChannel.open(path)) {
            ByteBuffer header = read(file, 0, HEADER);
            String architecture = architectureOf(header.array(), header.limit());
            if (architecture == null) {
                return new ElfFile(null, HEADER, file.size());
            }
            return new ElfFile(architecture, endOfSegments(file, header), file.size());
        }
    }

    private static ByteBuffer read(FileChannel file, long position, int size) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate(size);
        while (buffer.hasRemaining() && file.read(buffer, position + buffer.position()) > 0) {
            // Until all is there, or the file ends.
        }
        return buffer.flip();
    }

    /** End of the last segment that is mapped. Those of 32-bit files are not looked at. */
    private static long endOfSegments(FileChannel file, ByteBuffer header) throws IOException {
        if (header.limit() < HEADER || header.get(4) != 2) {
            return HEADER;
        }
        ByteOrder order = header.get(5) == 2 ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN;
        header.order(order);
        long table = header.getLong(32);
        int each = Short.toUnsignedInt(header.getShort(54));
        int count = Short.toUnsignedInt(header.getShort(56));
        long end = table + (long) each * count;
        for (int index = 0; index < count && table >= 0; index++) {
            ByteBuffer segment = read(file, table + (long) each * index, SEGMENT).order(order);
            if (segment.limit() == SEGMENT && segment.getInt(0) == LOADED) {
                end = Math.max(end, segment.getLong(8) + segment.getLong(32));
            }
        }
        return end;
    }

    /** The architecture that a file's first bytes tell; null where they are not those of an ELF file. */
    static String architectureOf(byte[] header, int length) {
        boolean elf = length >= 20 && header[0] == 0x7f && header[1] == 'E' && header[2] == 'L' && header[3] == 'F';
        if (!elf) {
            return null;
        }
        boolean is64 = header[4] == 2;
        boolean bigEndian = header[5] == 2;
        int low = header[bigEndian ? 19 : 18] & 0xff;
        int high = header[bigEndian ? 18 : 19] & 0xff;
        int machine = high << 8 | low;
        switch (machine) {
            case 3:
                return "x86";
            case 21:
                return bigEndian ? "ppc64" : "ppc64le";
            case 22:
                return "s390x";
            case 40:
                return "arm";
            case 62:
                return is64 ? "x86_64" : "x32";
            case 183:
                return "aarch64";
            case 243:
                return is64 ? "riscv64" : "riscv32";
            case 258:
                return is64 ? "loongarch64" : "loongarch32";
            default:
                return "machine " + machine;
        }
    }
}
