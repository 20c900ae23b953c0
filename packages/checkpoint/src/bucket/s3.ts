/** S3 and what speaks its language (R2, MinIO, Ceph, ...): ranged reads, puts that do not replace, uploads in parts. */
import type { FileSystem } from "../stores/file-system";
import { objectFileSystem } from "../stores/objects";
import { Bucket } from "./bucket";
import { Client } from "./client";
import { type S3Options, settingsOf } from "./options";

/** The least that S3 takes for all parts but the last, and the most parts. */
const LEAST_PART = 5 << 20;
const MOST_PARTS = 10_000;

/**
 * A bucket, for the option `fileSystem`; paths are keys: `runs/a`. A step's manifest is put last, and where the store knows conditional
 * puts (`If-None-Match: *`), never over another's.
 *
 * @throws OptError BAD_ARGUMENT; reading and writing throw MISSING, IO, UNSUPPORTED
 * @example
 * const fileSystem = s3FileSystem({ bucket: "training", credentials: { accessKeyId: "id", secretAccessKey: "key" } });
 * const save = () => saveCheckpoint("runs/a", { step: 1, tensors: {} }, { fileSystem });
 */
export function s3FileSystem(options: S3Options): FileSystem {
  const client = new Client(settingsOf(options));
  const store = new Bucket(client);
  return objectFileSystem({
    stat: (key) => store.stat(key),
    read: (key, target, position, { version }) => store.read(key, target, position, version as string | undefined),
    list: (folder) => store.list(folder),
    writer: {
      partBytes: (byteLength = 0) => Math.max(LEAST_PART, Math.ceil(byteLength / MOST_PARTS / 2 ** 20) * 2 ** 20),
      put: async (key, data) => void (await client.ask("PUT", key, { body: data })),
      putOnce: (key, data) => store.putOnce(key, data),
      begin: (key) => store.begin(key),
      remove: async (key) => void (await client.ask("DELETE", key, { allowed: [404] })),
      unfinished: async (folder) => (await store.uploads(`${folder}/`)).map(({ key }) => key.slice(folder.length + 1)),
      async abort(key) {
        for (const upload of await store.uploads(key)) if (upload.key === key) await store.abort(key, upload.id);
      },
    },
  });
}
