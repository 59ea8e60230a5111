"""What an address leads to: this machine, a private network, or the public internet."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

#: Public addresses of IPv6; and those that a network translates to the IPv4 address in their last four bytes.
_PUBLIC_IPV6, _TRANSLATED = ipaddress.ip_network("2000::/3"), ipaddress.ip_network("64:ff9b::/96")
#: Addresses that begin with an IPv4 address (6to4): the machines behind it, which may be those of a private network.
_TUNNELLED = ipaddress.ip_network("2002::/16")


def is_loopback_host(host: str) -> bool:
    """Return whether a server that is bound to ``host`` can be reached only from this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_loopback(url: str) -> bool:
    """Return whether the host of a URL is this machine."""
    host = urlsplit(url).hostname or ""
    return is_loopback_host(host) or host.endswith(".localhost")


def without_password(url: str) -> str:
    """Return a URL without the user and password in it."""
    scheme, slashes, rest = url.partition("//")
    place = rest[: min((at for mark in "/?#" if (at := rest.find(mark)) >= 0), default=len(rest))]
    return f"{scheme}{slashes}{rest[place.rfind('@') + 1 :]}"


def is_public(address: str) -> bool:
    """Return whether an IP address belongs to the public internet, as does the IPv4 address that it stands for."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _TRANSLATED:
            return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
        if ip.ipv4_mapped is None:
            return ip.is_global and ip in _PUBLIC_IPV6 and ip not in _TUNNELLED
        ip = ip.ipv4_mapped
    return ip.is_global and not ip.is_multicast
