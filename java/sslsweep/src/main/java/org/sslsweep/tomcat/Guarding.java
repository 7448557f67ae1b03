package org.sslsweep.tomcat;

/** An executor whose tasks are guarded. */
interface Guarding {}
