/** Figures of the guards as Micrometer's meters. Needs Micrometer, which nothing else here does. */
package org.sslsweep.micrometer;
