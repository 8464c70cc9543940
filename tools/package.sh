#!/bin/bash
# Makes a Debian package of a build: tools/package.sh build/release -> build/gauntlet_<version>_<architecture>.deb
# Needs dpkg-dev; what is in the package comes from the install rules and deploy/debian.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?say which build, as in build/release}
command -v dpkg-shlibdeps >/dev/null || { echo "package: there is no dpkg-shlibdeps; as root: apt-get install dpkg-dev" >&2; exit 3; }

version=$(sed -n 's/^project(gauntlet VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/gauntlet
chmod 755 "$work"
umask 022

DESTDIR=$root cmake --install "$build" --prefix /usr --strip >/dev/null

# Debian's own ways with papers.
doc=$root/usr/share/doc/gauntlet
rm "$doc/LICENSE"
cp deploy/debian/copyright "$doc/copyright"
maintainer=$(sed -n 's/^Maintainer: //p' deploy/debian/control)
printf 'gauntlet (%s) unstable; urgency=medium\n\n  * CHANGELOG.md says what is new.\n\n -- %s  %s\n' \
  "$version" "$maintainer" "$(git log -1 --format=%cD)" >"$doc/changelog"
find "$root/usr/share/man" "$doc/changelog" -type f -exec gzip -9n {} +

# The libraries by the packages that hold them.
mkdir -p "$work/debian" "$root/DEBIAN"
printf 'Source: gauntlet\n\nPackage: gauntlet\nArchitecture: any\n' >"$work/debian/control"
libraries=$(cd "$work" && dpkg-shlibdeps -O --warnings=0 gauntlet/usr/bin/gauntlet | sed -n 's/^shlibs:Depends=//p')

sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@LIBRARIES@/$libraries/" \
  -e "s/@SIZE@/$(du -sk --exclude=DEBIAN "$root" | cut -f1)/" deploy/debian/control >"$root/DEBIAN/control"
install -m 644 deploy/debian/conffiles "$root/DEBIAN/"
install -m 755 deploy/debian/{postinst,prerm,postrm} "$root/DEBIAN/"
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)

package=build/gauntlet_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
