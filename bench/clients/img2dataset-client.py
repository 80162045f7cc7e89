"""img2dataset with one process and as many threads as transfers may run, keeping nothing. With --decode pictures are
decoded by OpenCV and not encoded again. Its own statistics tell how many there were, not how large."""
import glob
import json
import logging
import os
import tempfile

from client import Client


def main():
    client = Client("img2dataset")
    if client.ca_file:
        os.environ["SSL_CERT_FILE"] = client.ca_file
    from img2dataset import download

    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/urls.txt", "w", encoding="ascii") as file:
            file.writelines(f"{url}\n" for url in client.urls)
        download(
            url_list=f"{folder}/urls.txt", output_folder=f"{folder}/output", output_format="dummy", processes_count=1,
            thread_count=client.concurrency, number_sample_per_shard=len(client.urls), resize_mode="keep_ratio",
            resize_only_if_bigger=True, image_size=1 << 20, skip_reencode=True,
            disable_all_reencoding=not client.decodes, compute_hash=None, extract_exif=False)
        for path in glob.glob(f"{folder}/output/*_stats.json"):
            with open(path, encoding="utf-8") as file:
                stats = json.load(file)
            client.images += stats["successes"]
            client.errors += stats["failed_to_download"] + stats["failed_to_resize"]
    print(json.dumps({"images": client.images, "errors": client.errors}))


if __name__ == "__main__":
    main()
