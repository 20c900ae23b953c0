/** The objects of a bucket: what S3's requests and answers mean. */
import { check, OptError } from "@opt/core";
import type { FolderEntry } from "../stores/file-system";
import { fail } from "../stores/objects";
import type { Client } from "./client";
import { tagsIn } from "./xml";

const PRECONDITION_FAILED = 412;

export class Bucket {
  constructor(private readonly client: Client) {}

  async stat(key: string) {
    const { status, header } = await this.client.ask("HEAD", key, { allowed: [403, 404] });
    if (status === 404) return undefined;
    if (status === 403) {
      // To who may not list, the store does not tell what is not there from what is forbidden.
      const query = { "list-type": "2", prefix: key, "max-keys": "1" };
      const listed = await this.client.ask("GET", "", { query, allowed: [403] });
      if (listed.status === 403) return undefined;
      throw fail("EACCES", `the store forbids HEAD of ${this.client.name(key)}`);
    }
    return {
      byteLength: Number(header("content-length")),
      modified: Date.parse(header("last-modified") ?? "") || 0,
      version: header("etag") ?? undefined,
    };
  }

  async read(key: string, target: Uint8Array, position: number, etag: string | undefined): Promise<void> {
    const range = `bytes=${position}-${position + target.length - 1}`;
    const headers = { range, ...(etag === undefined ? {} : { "if-match": etag }) };
    const question = { headers, into: target, allowed: [PRECONDITION_FAILED] };
    const { status, body } = await this.client.ask("GET", key, question);
    if (status === PRECONDITION_FAILED) throw fail("ESTALE", `${this.client.name(key)} has been replaced`);
    const isRange = body.length === target.length && (status === 206 || position === 0);
    check(
      isRange,
      "IO",
      this.client.name(key),
      () => `${target.length} bytes of a range were asked for, got ${body.length}, status ${status}.`,
      "The store must give ranges.",
    );
  }

  async list(folder: string): Promise<FolderEntry[]> {
    const prefix = folder === "" ? "" : `${folder}/`;
    const found = new Map<string, FolderEntry>();
    let token: string | undefined;
    do {
      const query = { "list-type": "2", prefix, delimiter: "/", ...(token ? { "continuation-token": token } : {}) };
      const { body } = await this.client.ask("GET", "", { query });
      const text = new TextDecoder().decode(body);
      for (const entry of tagsIn(text, "Contents")) {
        const name = tagsIn(entry, "Key")[0]!.slice(prefix.length);
        if (isName(name)) found.set(name, { name, kind: "file" });
      }
      for (const entry of tagsIn(text, "CommonPrefixes")) {
        const name = tagsIn(entry, "Prefix")[0]!.slice(prefix.length, -1);
        if (isName(name)) found.set(name, { name, kind: "folder" });
      }
      token = tagsIn(text, "NextContinuationToken")[0];
    } while (token);
    return [...found.values()];
  }

  /** A store that ignores the condition replaces what is there; one that does not know it (501) is asked again without. */
  async putOnce(key: string, body: Uint8Array): Promise<boolean> {
    const headers = { "if-none-match": "*" };
    const answer = await this.client.ask("PUT", key, { body, headers, allowed: [PRECONDITION_FAILED, 501] });
    if (answer.status === 501) {
      if (await this.stat(key)) return false;
      await this.client.ask("PUT", key, { body });
      return this.#holds(key, body);
    }
    return answer.status !== PRECONDITION_FAILED || (answer.isAgain && (await this.#holds(key, body)));
  }

  async #holds(key: string, data: Uint8Array): Promise<boolean> {
    const { body, status } = await this.client.ask("GET", key, { allowed: [404] });
    return status === 200 && body.length === data.length && body.every((byte, i) => byte === data[i]);
  }

  async begin(key: string) {
    const before = (await this.stat(key))?.version;
    const { body } = await this.client.ask("POST", key, { query: { uploads: "" } });
    const id = tagsIn(body, "UploadId")[0]!;
    const tags: string[] = [];
    let byteLength = 0;
    return {
      part: async (index: number, data: Uint8Array) => {
        const query = { partNumber: `${index + 1}`, uploadId: id };
        const { header } = await this.client.ask("PUT", key, { query, body: data });
        tags[index] = header("etag") ?? "";
        byteLength += data.length;
      },
      finish: () => this.#complete(key, id, tags, byteLength, before),
      abort: () => this.abort(key, id),
    };
  }

  async #complete(key: string, id: string, tags: readonly string[], byteLength: number, before: unknown) {
    const parts = tags.map((tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${tag}</ETag></Part>`).join("");
    const body = new TextEncoder().encode(`<CompleteMultipartUpload>${parts}</CompleteMultipartUpload>`);
    const asked = this.client.ask("POST", key, { query: { uploadId: id }, body });
    const answer = await asked.catch((error: Error) => error);
    // A failure after the first byte of the answer comes as status 200.
    if (!(answer instanceof Error) && tagsIn(answer.body, "Code").length === 0) return;
    // It may have been done and the answer lost: what is done again then finds no upload.
    const there = await this.stat(key);
    if (there?.byteLength === byteLength && there.version !== before) return;
    if (answer instanceof OptError) throw answer;
    const problem = `the upload of ${byteLength} bytes must be completed, the store did not.`;
    throw new OptError("IO", this.client.name(key), problem, "Older steps are untouched: save again.");
  }

  async abort(key: string, id: string): Promise<void> {
    await this.client.ask("DELETE", key, { query: { uploadId: id }, allowed: [404, 405, 501] });
  }

  /** Uploads that have not ended of keys with this prefix; none where the store does not tell. */
  async uploads(prefix: string): Promise<{ key: string; id: string }[]> {
    const asked = await this.client
      .ask("GET", "", { query: { uploads: "", prefix }, allowed: [400, 403, 404, 405, 501] })
      .catch(() => undefined);
    return tagsIn(asked?.body ?? "", "Upload").flatMap((upload) => {
      const [key, id] = [tagsIn(upload, "Key")[0], tagsIn(upload, "UploadId")[0]];
      return key !== undefined && id !== undefined ? [{ key, id }] : [];
    });
  }
}

/** Keys may have anything between two slashes. As parts of a path these lead elsewhere: who removes what is listed must not follow them. */
function isName(name: string): boolean {
  return !["", ".", ".."].includes(name);
}
