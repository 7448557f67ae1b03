"""Loads a libcrypto and its libssl, makes a TLS context with them, and prints the version text.

    python3 ci/lines/check.py LIBCRYPTO LIBSSL
"""

import ctypes
import pathlib
import re
import sys


def load(path):
    """Loads a library out of a wheel: it needs siblings and has no run path to find them by.

    The linker takes what is already loaded under the wanted name, so a sibling is loaded first.
    """
    while True:
        try:
            return ctypes.CDLL(str(path))
        except OSError as error:
            missing = re.match(r"([^/:]+): cannot open shared object file", str(error))
            sibling = missing and path.parent / missing[1]
            if not sibling or not sibling.exists():
                raise
            load(sibling)


def main():
    crypto_path, ssl_path = (pathlib.Path(argument).absolute() for argument in sys.argv[1:])
    crypto, tls = load(crypto_path), load(ssl_path)

    old = not hasattr(crypto, "OpenSSL_version")
    version = crypto.SSLeay_version if old else crypto.OpenSSL_version
    version.restype = ctypes.c_char_p

    if old:
        tls.SSL_library_init()
    method = tls.SSLv23_method if old else tls.TLS_method
    method.restype = ctypes.c_void_p
    tls.SSL_CTX_new.restype = ctypes.c_void_p
    tls.SSL_CTX_new.argtypes = [ctypes.c_void_p]
    if not tls.SSL_CTX_new(method()):
        sys.exit(f"{ssl_path}: SSL_CTX_new failed")
    print(version(0).decode())


main()
