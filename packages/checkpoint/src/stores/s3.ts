/** S3 and what speaks its language (R2, MinIO, Ceph, ...): ranged reads, puts that refuse to replace, uploads in parts. */

import { check, checkOptions, OptError } from "@opt/core";
import { AwsV4Signer } from "aws4fetch";
import type { FileSystem, FolderEntry } from "./file-system";
import { hex } from "./hex";
import { fail, objectFileSystem } from "./objects";
import { sleep } from "./timers";

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface S3Options {
  readonly bucket: string;
  /** Without it AWS_REGION, else us-east-1. */
  readonly region?: string;
  /** The server, where it is not AWS's; without it AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL. The bucket is the first part of its paths. */
  readonly endpoint?: string;
  /** A function is called for each request, and may give new ones when the old expire. Without it AWS_ACCESS_KEY_ID and the like. */
  readonly credentials?: S3Credentials | (() => S3Credentials | Promise<S3Credentials>) | "anonymous";
  /** How often a request is made anew that failed for no lasting reason; 5 without it, after 0.1 s, 0.2 s and so on. */
  readonly retries?: number;
  /** Milliseconds until a request counts as failed; 60,000 without it. */
  readonly timeout?: number;
}

const WHERE = "s3FileSystem";

/** The least that S3 takes for all parts but the last, and the most parts. */
const LEAST_PART = 5 << 20;
const MOST_PARTS = 10_000;

const FIRST_WAIT = 100;
const LONGEST_WAIT = 5_000;

/**
 * A bucket, for the option `fileSystem`; paths are keys: `runs/a`. A step's manifest is put last, and where the store knows conditional
 * puts (`If-None-Match: *`), never over another's. Throws BAD_ARGUMENT; reading and writing throw MISSING, IO, UNSUPPORTED.
 *
 * @example
 * const fileSystem = s3FileSystem({ bucket: "training", credentials: { accessKeyId: "id", secretAccessKey: "key" } });
 * const save = () => saveCheckpoint("runs/a", { step: 1, tensors: {} }, { fileSystem });
 */
export function s3FileSystem(options: S3Options): FileSystem {
  const client = new Client(options);
  const store = new Bucket(client);
  return objectFileSystem({
    stat: (key) => store.stat(key),
    read: (key, target, position, { version }) => store.read(key, target, position, version as string | undefined),
    list: (folder) => store.list(folder),
    writer: {
      partBytes: (byteLength = 0) => Math.max(LEAST_PART, Math.ceil(byteLength / MOST_PARTS / 2 ** 20) * 2 ** 20),
      put: async (key, data) => void (await client.ask("PUT", key, { body: data })),
      putOnce: (key, data) => store.putOnce(key, data),
      isFenced: (folder) => store.isFenced(folder),
      begin: (key) => store.begin(key),
      remove: async (key) => void (await client.ask("DELETE", key, { allowed: [404] })),
      unfinished: async (folder) => (await store.uploads(`${folder}/`)).map(({ key }) => key.slice(folder.length + 1)),
      async abort(key) {
        for (const upload of await store.uploads(key)) if (upload.key === key) await store.abort(key, upload.id);
      },
    },
  });
}

interface Question {
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Takes the body of the answer, so that no second memory is needed for it. */
  readonly into?: Uint8Array;
  /** Statuses that are an answer and no failure. */
  readonly allowed?: readonly number[];
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
  /** Whether an earlier try may have been carried out although no answer came. */
  readonly isAgain: boolean;
}

/** Signs requests and makes them anew. What it tells of a failure never holds more than the store's name for it. */
class Client {
  readonly bucket: string;
  readonly #root: URL;
  readonly #region: string;
  readonly #credentials: NonNullable<S3Options["credentials"]>;
  readonly #retries: number;
  readonly #timeout: number;

  constructor(options: S3Options) {
    checkOptions(WHERE, options, {
      bucket: "string",
      region: "string",
      endpoint: "string",
      credentials: "any",
      retries: "number",
      timeout: "number",
    });
    const env: Readonly<Record<string, string | undefined>> = globalThis.process?.env ?? {};
    const { bucket, retries = 5, timeout = 60_000 } = options;
    const isBucket = typeof bucket === "string" && /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket);
    const advice = "3 to 63 of a-z, 0-9, - and dots; the folder inside of it is the path.";
    check(
      isBucket,
      "BAD_ARGUMENT",
      WHERE,
      () => `bucket must be a bucket's name, got ${JSON.stringify(bucket)}.`,
      advice,
    );
    const isCount = Number.isSafeInteger(retries) && retries >= 0;
    check(isCount, "BAD_ARGUMENT", WHERE, () => `retries must be a whole number from 0, got ${retries}.`);
    check(timeout > 0, "BAD_ARGUMENT", WHERE, () => `timeout must be positive, got ${timeout}.`, "In milliseconds.");
    const region = options.region ?? env.AWS_REGION ?? env.AWS_DEFAULT_REGION ?? "us-east-1";
    const endpoint = options.endpoint ?? env.AWS_ENDPOINT_URL_S3 ?? env.AWS_ENDPOINT_URL;
    const address = endpoint ?? `https://s3.${region}.amazonaws.com`;
    const isAddress = URL.canParse(address) && /^https?:$/.test(new URL(address).protocol);
    check(
      isAddress,
      "BAD_ARGUMENT",
      WHERE,
      () => "endpoint must be an http(s) URL.",
      "For example https://minio.example.org.",
    );
    const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN: token } = env;
    const fromEnv = accessKeyId !== undefined && secretAccessKey !== undefined;
    const credentials =
      options.credentials ??
      (fromEnv ? { accessKeyId, secretAccessKey, ...(token === undefined ? {} : { sessionToken: token }) } : undefined);
    const howTo =
      'Give { accessKeyId, secretAccessKey }, set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or say "anonymous".';
    check(credentials !== undefined, "BAD_ARGUMENT", WHERE, () => "credentials are needed, there are none.", howTo);
    const isComplete = (given: unknown) =>
      typeof given === "object" && given !== null && "accessKeyId" in given && "secretAccessKey" in given;
    const isCredentials = credentials === "anonymous" || typeof credentials === "function" || isComplete(credentials);
    check(isCredentials, "BAD_ARGUMENT", WHERE, () => "credentials lack accessKeyId or secretAccessKey.", howTo);
    this.bucket = bucket;
    this.#region = region;
    this.#root = new URL(address);
    this.#credentials = credentials;
    this.#retries = retries;
    this.#timeout = timeout;
  }

  name(key: string): string {
    return `s3://${this.bucket}/${key}`;
  }

  /** Throws IO when it goes on failing, MISSING for a bucket that is not there, EACCES for what is forbidden. */
  async ask(method: string, key: string, question: Question = {}): Promise<Answer> {
    let problem = "";
    for (let tries = 0; tries <= this.#retries; tries++) {
      if (tries > 0) await sleep(Math.min(FIRST_WAIT * 2 ** (tries - 1), LONGEST_WAIT) * (0.5 + Math.random() / 2));
      const answer = await this.#once(method, key, question, tries > 0).catch((error: Error) => error);
      if (answer instanceof OptError) throw answer;
      if (answer instanceof Error) {
        problem = answer.name === "TimeoutError" ? `no answer within ${this.#timeout} ms` : "the connection failed";
        continue;
      }
      const { status } = answer;
      if ((status >= 200 && status < 300) || question.allowed?.includes(status)) return answer;
      const code = tagsIn(answer.body, "Code")[0] ?? "";
      problem = `status ${status}${/^\w+$/.test(code) ? ` ${code}` : ""}`;
      const passes = status >= 500 || status === 429 || status === 408 || status === 409 || code === "RequestTimeout";
      if (passes && status !== 501) continue;
      throw this.#refusal(method, key, status, code, problem);
    }
    const advice =
      "Older steps are untouched. Try again, or look at the store and the way to it; see retries and timeout.";
    throw new OptError(
      "IO",
      this.name(key),
      `${method} must succeed, got ${problem}, ${this.#retries + 1} times.`,
      advice,
    );
  }

  #refusal(method: string, key: string, status: number, code: string, problem: string): Error {
    const where = this.name(key);
    if (code === "NoSuchBucket")
      return new OptError("MISSING", where, "the bucket must exist, the store knows none of this name.", "Create it.");
    if (status === 404) return fail("ENOENT", `${where} is not there`);
    if (status === 401 || status === 403) return fail("EACCES", `the store forbids ${method} of ${where} (${problem})`);
    return new OptError("IO", where, `${method} must succeed, got ${problem}.`, "Look at the store's documentation.");
  }

  async #once(
    method: string,
    key: string,
    { query = {}, headers = {}, body, into }: Question,
    isAgain: boolean,
  ): Promise<Answer> {
    const url = new URL(this.#root);
    const path = [this.bucket, ...key.split("/")].map(encodeKey).join("/");
    url.pathname = `${url.pathname.replace(/\/$/, "")}/${path}`.replace(/\/$/, "");
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    // The hash of the body is signed too: what arrives changed is refused.
    const digest = await crypto.subtle.digest("SHA-256", (body ?? new Uint8Array(0)) as Uint8Array<ArrayBuffer>);
    const asked: Record<string, string> = { ...headers, "x-amz-content-sha256": hex(new Uint8Array(digest)) };
    const given = typeof this.#credentials === "function" ? await this.#credentials() : this.#credentials;
    const signed =
      given === "anonymous"
        ? { headers: asked }
        : await new AwsV4Signer({
            ...given,
            method,
            url: `${url}`,
            headers: asked,
            service: "s3",
            region: this.#region,
          }).sign();
    const response = await fetch("url" in signed ? signed.url : url, {
      method,
      headers: signed.headers,
      ...(body === undefined ? {} : { body: body as Uint8Array<ArrayBuffer> }),
      signal: AbortSignal.timeout(this.#timeout),
    });
    return {
      status: response.status,
      headers: response.headers,
      body: into && response.ok ? await filled(into, response) : new Uint8Array(await response.arrayBuffer()),
      isAgain,
    };
  }
}

/** As much of `target` as the answer has; what is too much is dropped. */
async function filled(target: Uint8Array, response: Response): Promise<Uint8Array> {
  let length = 0;
  const reader = response.body?.getReader();
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
    target.set(piece.value.subarray(0, target.length - length), length);
    length = Math.min(target.length, length + piece.value.length);
  }
  return target.subarray(0, length);
}

/** What S3 wants encoded beyond what encodeURIComponent does. */
function encodeKey(part: string): string {
  return encodeURIComponent(part).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** What stands between `<tag>` and `</tag>`, each time. */
function tagsIn(xml: Uint8Array | string, tag: string): string[] {
  const text = typeof xml === "string" ? xml : new TextDecoder().decode(xml);
  return [...text.matchAll(new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`, "g"))].map(([, inner]) => unescaped(inner!));
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function unescaped(text: string): string {
  if (text.includes("<")) return text;
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (entity, hexadecimal, decimal, name) => {
    if (name !== undefined) return ENTITIES[name] ?? entity;
    return String.fromCodePoint(hexadecimal ? Number.parseInt(hexadecimal, 16) : Number(decimal));
  });
}

const PRECONDITION_FAILED = 412;

class Bucket {
  readonly #client: Client;
  #fenced: Promise<boolean> | undefined;

  constructor(client: Client) {
    this.#client = client;
  }

  async stat(key: string) {
    const { status, headers } = await this.#client.ask("HEAD", key, { allowed: [403, 404] });
    if (status === 404) return undefined;
    if (status === 403) {
      // To who may not list, the store does not tell what is not there from what is forbidden.
      const query = { "list-type": "2", prefix: key, "max-keys": "1" };
      const listed = await this.#client.ask("GET", "", { query, allowed: [403] });
      if (listed.status === 403) return undefined;
      throw fail("EACCES", `the store forbids HEAD of ${this.#client.name(key)}`);
    }
    return {
      byteLength: Number(headers.get("content-length")),
      modified: Date.parse(headers.get("last-modified") ?? "") || 0,
      version: headers.get("etag") ?? undefined,
    };
  }

  async read(key: string, target: Uint8Array, position: number, etag: string | undefined): Promise<void> {
    const range = `bytes=${position}-${position + target.length - 1}`;
    const headers = { range, ...(etag === undefined ? {} : { "if-match": etag }) };
    const question = { headers, into: target, allowed: [PRECONDITION_FAILED] };
    const { status, body } = await this.#client.ask("GET", key, question);
    if (status === PRECONDITION_FAILED) throw fail("ESTALE", `${this.#client.name(key)} has been replaced`);
    const problem = () => `${target.length} bytes of a range were asked for, got ${body.length}, status ${status}.`;
    check(
      body.length === target.length && (status === 206 || position === 0),
      "IO",
      this.#client.name(key),
      problem,
      "The store must give ranges.",
    );
  }

  async list(folder: string): Promise<FolderEntry[]> {
    const prefix = folder === "" ? "" : `${folder}/`;
    const found = new Map<string, FolderEntry>();
    let token: string | undefined;
    do {
      const query = { "list-type": "2", prefix, delimiter: "/", ...(token ? { "continuation-token": token } : {}) };
      const { body } = await this.#client.ask("GET", "", { query });
      const text = new TextDecoder().decode(body);
      for (const entry of tagsIn(text, "Contents")) {
        const name = tagsIn(entry, "Key")[0]!.slice(prefix.length);
        if (name !== "") found.set(name, { name, kind: "file" });
      }
      for (const entry of tagsIn(text, "CommonPrefixes")) {
        const name = tagsIn(entry, "Prefix")[0]!.slice(prefix.length, -1);
        found.set(name, { name, kind: "folder" });
      }
      token = tagsIn(text, "NextContinuationToken")[0];
    } while (token);
    return [...found.values()];
  }

  async putOnce(key: string, data: Uint8Array): Promise<boolean> {
    if (await this.isFenced(key)) {
      const answer = await this.#putWhereNone(key, data);
      return answer.status !== PRECONDITION_FAILED || (answer.isAgain && (await this.#holds(key, data)));
    }
    if (await this.stat(key)) return false;
    await this.#client.ask("PUT", key, { body: data });
    return this.#holds(key, data);
  }

  /** Whether the store knows conditional puts: some take the condition and do not keep it. Asked once. */
  isFenced(key: string): Promise<boolean> {
    this.#fenced ??= this.#probe(`${key}.probe-${hex(crypto.getRandomValues(new Uint8Array(6)))}`);
    this.#fenced.catch(() => {
      this.#fenced = undefined;
    });
    return this.#fenced;
  }

  async #probe(key: string): Promise<boolean> {
    const [first, second] = [new Uint8Array([1]), new Uint8Array([2])];
    try {
      const { status } = await this.#putWhereNone(key, first);
      return status !== 501 && (await this.#putWhereNone(key, second)).status === PRECONDITION_FAILED;
    } finally {
      await this.#client.ask("DELETE", key, { allowed: [404] });
    }
  }

  #putWhereNone(key: string, body: Uint8Array): Promise<Answer> {
    return this.#client.ask("PUT", key, {
      body,
      headers: { "if-none-match": "*" },
      allowed: [PRECONDITION_FAILED, 501],
    });
  }

  async #holds(key: string, data: Uint8Array): Promise<boolean> {
    const { body, status } = await this.#client.ask("GET", key, { allowed: [404] });
    return status === 200 && body.length === data.length && body.every((byte, i) => byte === data[i]);
  }

  async begin(key: string) {
    const before = (await this.stat(key))?.version;
    const { body } = await this.#client.ask("POST", key, { query: { uploads: "" } });
    const id = tagsIn(body, "UploadId")[0]!;
    const tags: string[] = [];
    let byteLength = 0;
    return {
      part: async (index: number, data: Uint8Array) => {
        const query = { partNumber: `${index + 1}`, uploadId: id };
        const { headers } = await this.#client.ask("PUT", key, { query, body: data });
        tags[index] = headers.get("etag") ?? "";
        byteLength += data.length;
      },
      finish: () => this.#complete(key, id, tags, byteLength, before),
      abort: () => this.abort(key, id),
    };
  }

  async #complete(
    key: string,
    id: string,
    tags: readonly string[],
    byteLength: number,
    before: unknown,
  ): Promise<void> {
    const parts = tags.map((tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${tag}</ETag></Part>`).join("");
    const body = new TextEncoder().encode(`<CompleteMultipartUpload>${parts}</CompleteMultipartUpload>`);
    const asked = this.#client.ask("POST", key, { query: { uploadId: id }, body });
    const answer = await asked.catch((error: Error) => error);
    // A failure after the first byte of the answer comes as status 200.
    if (!(answer instanceof Error) && tagsIn(answer.body, "Code").length === 0) return;
    // It may have been done and the answer lost: what is done again then finds no upload.
    const there = await this.stat(key);
    if (there?.byteLength === byteLength && there.version !== before) return;
    if (answer instanceof OptError) throw answer;
    const problem = `the upload of ${byteLength} bytes must be completed, the store did not.`;
    throw new OptError("IO", this.#client.name(key), problem, "Older steps are untouched: save again.");
  }

  async abort(key: string, id: string): Promise<void> {
    await this.#client.ask("DELETE", key, { query: { uploadId: id }, allowed: [404, 405, 501] });
  }

  /** Uploads that have not ended of keys with this prefix; none where the store does not tell. */
  async uploads(prefix: string): Promise<{ key: string; id: string }[]> {
    const asked = await this.#client
      .ask("GET", "", { query: { uploads: "", prefix }, allowed: [400, 403, 404, 405, 501] })
      .catch(() => undefined);
    return tagsIn(asked?.body ?? "", "Upload").flatMap((upload) => {
      const [key, id] = [tagsIn(upload, "Key")[0], tagsIn(upload, "UploadId")[0]];
      return key !== undefined && id !== undefined ? [{ key, id }] : [];
    });
  }
}
