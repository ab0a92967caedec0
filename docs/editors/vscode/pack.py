"""Pack this folder as a VS Code extension: `python docs/editors/vscode/pack.py` writes `lftj.vsix` where it is run.

`code --install-extension lftj.vsix` installs it. A VSIX file is a zip archive of the folder with a manifest; nothing is
fetched.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

FOLDER = Path(__file__).resolve().parent
FILES = ("package.json", "extension.js", "connection.js", "language-configuration.json")
SYNTAXES = ("syntaxes/lftj.tmLanguage.json", "syntaxes/markdown-lftj.json")
TYPES = """\
<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension=".json" ContentType="application/json"/>
  <Default Extension=".js" ContentType="application/javascript"/>
  <Default Extension=".vsixmanifest" ContentType="text/xml"/>
</Types>
"""


def manifest(package: dict[str, Any]) -> str:
    """What the editor reads first: who made what, for which versions, and where its package.json is."""
    engine = quoteattr(package["engines"]["vscode"])
    named = {"Id": package["name"], "Version": package["version"], "Publisher": package["publisher"]}
    identity = " ".join(f"{name}={quoteattr(value)}" for name, value in named.items())
    return f"""\
<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" {identity}/>
    <DisplayName>{escape(package["displayName"])}</DisplayName>
    <Description xml:space="preserve">{escape(package["description"])}</Description>
    <Categories>Programming Languages</Categories>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value={engine}/>
    </Properties>
  </Metadata>
  <Installation>
    <InstallationTarget Id="Microsoft.VisualStudio.Code"/>
  </Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
  </Assets>
</PackageManifest>
"""


def pack(target: Path) -> None:
    """Write the extension to a file."""
    package: dict[str, Any] = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", TYPES)
        archive.writestr("extension.vsixmanifest", manifest(package))
        for name in (*FILES, *SYNTAXES):
            archive.write(FOLDER / name, f"extension/{name}")


if __name__ == "__main__":
    pack(Path(sys.argv[1] if len(sys.argv) > 1 else "lftj.vsix"))
