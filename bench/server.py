"""nginx on loopback: HTTP/1.1 on one port, HTTPS with HTTP/2 on another, with certificates made here."""
import os
import shutil
import socket
import subprocess
import time

CONFIGURATION = """\
daemon off;
{user}
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    default_type application/octet-stream;
    open_file_cache max=5000;
    open_file_cache_valid 1h;
    keepalive_requests 100000000;
    keepalive_timeout 1h;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    root {files};
    server {{ listen 127.0.0.1:{http}; }}
    server {{
        listen 127.0.0.1:{https} ssl http2;
        ssl_certificate {folder}/server.pem;
        ssl_certificate_key {folder}/server.key;
        http2_max_concurrent_streams 128;
    }}
}}
"""


class Server:
    def __init__(self, folder, files):
        self.folder, self.files = folder, files
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        if not program:
            raise SystemExit("compare: nginx is not installed")
        self.ca_file = f"{folder}/ca.pem"
        self._make_certificates()
        # The sockets are ours and inherited, so that no port is lost to somebody else.
        listeners = [socket.create_server(("127.0.0.1", 0), backlog=511) for _ in range(2)]
        http, https = (listener.getsockname()[1] for listener in listeners)
        self.bases = {"http": f"http://127.0.0.1:{http}", "https": f"https://127.0.0.1:{https}"}
        with open(f"{folder}/nginx.conf", "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(folder=folder, files=files, http=http, https=https,
                                            user="user root;" if os.geteuid() == 0 else ""))
        descriptors = [listener.fileno() for listener in listeners]
        self._process = subprocess.Popen(
            [program, "-p", folder, "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"],
            env=dict(os.environ, NGINX="".join(f"{descriptor};" for descriptor in descriptors)),
            pass_fds=descriptors, stdin=subprocess.DEVNULL)
        for listener in listeners:
            listener.close()
        self._wait(http)

    def _wait(self, port):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.01)
        self.stop()
        with open(f"{self.folder}/error.log", encoding="utf-8") as file:
            raise SystemExit(f"compare: nginx does not answer: {file.read()}")

    def _make_certificates(self):
        def openssl(*arguments):
            subprocess.run(["openssl", *arguments], check=True, cwd=self.folder, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)

        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "3650", "-subj", "/CN=benchmark")
        openssl("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=127.0.0.1")
        with open(f"{self.folder}/names", "w", encoding="ascii") as file:
            file.write("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "3650", "-extfile", "names", "-out", "server.pem")

    def write_urls(self, path, work, protocol, most=None):
        """The URLs of a kind of work, one a line, the first so many."""
        with open(f"{self.files}/{work}.paths", encoding="ascii") as file:
            names = file.read().split()[:most]
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"{self.bases[protocol]}/{name}\n" for name in names)

    def stop(self):
        self._process.terminate()
        self._process.wait()
