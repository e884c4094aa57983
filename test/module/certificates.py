"""Certificates for tests, made by the openssl command."""
import subprocess

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Certificates:
    """An authority in a folder, and what it signs: NAME.pem and NAME.key."""

    def __init__(self, folder, name="ca"):
        self.folder, self.ca = folder, folder / f"{name}.pem"
        self.ca_key = folder / f"{name}.key"
        self.run("req", "-x509", *KEY, "-days", 2, "-subj", f"/CN=Our {name}",
                 "-keyout", self.ca_key, "-out", self.ca)

    def run(self, *words):
        subprocess.run(["openssl", *map(str, words)], cwd=self.folder,
                       check=True, capture_output=True)

    def sign(self, name, alternatives="", days=2):
        """For hosts such as "DNS:localhost,IP:127.0.0.1"."""
        pem, request = self.folder / f"{name}.pem", self.folder / "request"
        extensions = self.folder / "extensions"
        extensions.write_text(
            f"subjectAltName={alternatives}\n" if alternatives else "")
        self.run("req", *KEY, "-subj", f"/CN={name}", "-keyout", f"{name}.key",
                 "-out", request)
        self.run("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey",
                 self.ca_key, "-days", days, "-extfile", extensions, "-out",
                 pem)
        return pem

    def sign_itself(self, name, alternatives):
        self.run("req", "-x509", *KEY, "-days", 2, "-subj", f"/CN={name}",
                 "-addext", f"subjectAltName={alternatives}", "-keyout",
                 f"{name}.key", "-out", f"{name}.pem")
        return self.folder / f"{name}.pem"
