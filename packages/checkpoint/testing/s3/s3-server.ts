/** An S3 server on loopback, and before it a gate that adds conditional puts, counts bytes, and does what networks do. */
import { createHash, createHmac } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request as forward, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import S3rver from "s3rver";
import { afterEach, beforeEach } from "vitest";
import { s3FileSystem } from "../../src/bucket/s3";

/** `busy`: 500 and not done; `cut`: half of the body arrives, then the connection ends; `lost`: done, and no answer; `forbidden`: 403; `silent`: no answer ever. */
export type Fate = "busy" | "cut" | "lost" | "forbidden" | "silent" | undefined;

export interface S3Request {
  readonly method: string;
  /** With its query. */
  readonly url: string;
  /** Its signature, with the region that was signed for. */
  readonly authorization: string;
}

const SECRET = "S3RVER";
const hash = (data: Buffer | string) => createHash("sha256").update(data).digest("hex");
const mac = (key: Buffer | string, text: string) => createHmac("sha256", key).update(text).digest();

/** Signature version 4, which the server takes without looking. */
function isSigned(request: IncomingMessage, body: Buffer): boolean {
  const pattern =
    /^AWS4-HMAC-SHA256 Credential=[^/]+\/((\d+)\/([^/]+)\/s3)\/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)$/;
  const [, scope, day, region, names, signature] = pattern.exec(request.headers.authorization ?? "") ?? [];
  if (signature === undefined) return false;
  const [path, query = ""] = request.url!.split("?");
  const encoded = (text: string) =>
    encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  const pairs = [...new URLSearchParams(query)].map(([name, value]) => `${encoded(name)}=${encoded(value)}`);
  const headers = names!.split(";").map((name) => `${name}:${request.headers[name]}\n`);
  const digest = request.headers["x-amz-content-sha256"];
  const canonical = [request.method, path, pairs.sort().join("&"), headers.join(""), names, digest].join("\n");
  const text = `AWS4-HMAC-SHA256\n${request.headers["x-amz-date"]}\n${scope}/aws4_request\n${hash(canonical)}`;
  const key = mac(mac(mac(mac(`AWS4${SECRET}`, day!), region!), "s3"), "aws4_request");
  return mac(key, text).toString("hex") === signature && digest === hash(body);
}

export class S3TestServer {
  /** What happens to a request. */
  fate: (request: S3Request) => Fate = () => undefined;
  /** Whether `If-None-Match: *` is kept. */
  isConditional = true;
  readonly requests: S3Request[] = [];
  /** Of the bodies of answers to GET of objects. */
  bytesRead = 0;
  url = "";
  /** Uploads that have not ended: id and key. */
  readonly uploads = new Map<string, string>();
  readonly #folder = mkdtempSync(join(tmpdir(), "opt-s3-"));
  readonly #server = new S3rver({
    address: "127.0.0.1",
    port: 0,
    silent: true,
    directory: this.#folder,
    vhostBuckets: false,
    configureBuckets: [{ name: "bucket", configs: [] }],
  });
  readonly #gate: Server = createServer((request, response) => void this.#pass(request, response));
  #port = 0;
  #turn: Promise<unknown> = Promise.resolve();

  async start(): Promise<void> {
    this.#port = (await this.#server.run()).port;
    await new Promise<void>((resolve) => this.#gate.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.#gate.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#gate.closeAllConnections();
    await new Promise((resolve) => this.#gate.close(resolve));
    await this.#server.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { authorization = "" } = request.headers;
    const asked = { method: request.method!, url: request.url!, authorization };
    this.requests.push(asked);
    const body: Buffer[] = [];
    for await (const piece of request) body.push(piece as Buffer);
    const fate = this.fate(asked);
    if (fate === "busy") return void response.writeHead(500).end("<Error><Code>InternalError</Code></Error>");
    if (fate === "forbidden") return void response.writeHead(403).end("<Error><Code>AccessDenied</Code></Error>");
    if (fate === "silent") return;
    if (fate === "cut") return void request.socket.destroy();
    if (!isSigned(request, Buffer.concat(body)))
      return void response.writeHead(403).end("<Error><Code>SignatureDoesNotMatch</Code></Error>");
    const upload = new URL(asked.url, "http://gate").searchParams;
    const isBucket = /^\/bucket\/?\?/.test(asked.url);
    // The server knows neither of these two.
    if (asked.method === "GET" && isBucket && upload.has("uploads")) return void response.end(this.#uploadsAsXml());
    if (asked.method === "DELETE" && upload.has("uploadId")) {
      this.uploads.delete(upload.get("uploadId")!);
      return void response.writeHead(204).end();
    }
    const { "if-none-match": condition } = request.headers;
    if (this.isConditional && asked.method === "PUT" && condition === "*") {
      // One after the other, so that nothing comes between looking and putting.
      const mine = this.#turn.then(async () => {
        const there = await this.#ask("HEAD", asked.url, {}, []);
        return there.status === 200 ? { status: 412, headers: {}, body: Buffer.alloc(0) } : this.#put(request, body);
      });
      this.#turn = mine.catch(() => {});
      return this.#answer(await mine, fate, asked, request, response);
    }
    const put = asked.method === "PUT" ? this.#put(request, body) : undefined;
    return this.#answer(
      await (put ?? this.#ask(asked.method, asked.url, request.headers, body)),
      fate,
      asked,
      request,
      response,
    );
  }

  #uploadsAsXml(): string {
    const uploads = [...this.uploads].map(
      ([id, key]) => `<Upload><Key>${key}</Key><UploadId>${id}</UploadId></Upload>`,
    );
    return `<ListMultipartUploadsResult>${uploads.join("")}</ListMultipartUploadsResult>`;
  }

  #put(request: IncomingMessage, body: readonly Buffer[]) {
    return this.#ask("PUT", request.url!, request.headers, body);
  }

  #answer(
    { status, headers, body }: { status: number; headers: IncomingMessage["headers"]; body: Buffer },
    fate: Fate,
    asked: S3Request,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    const [, key, query] = /^\/bucket\/([^?]*)\??(.*)$/.exec(asked.url) ?? [];
    if (asked.method === "POST" && query?.startsWith("uploads")) {
      this.uploads.set(/<UploadId>(.*?)</.exec(`${body}`)![1]!, key!);
    } else if (asked.method === "POST" && status === 200) {
      this.uploads.delete(new URLSearchParams(query).get("uploadId")!);
    }
    if (fate === "lost") return void request.socket.destroy();
    if (asked.method === "GET" && !asked.url.includes("?")) this.bytesRead += body.length;
    response.writeHead(status, headers).end(body);
  }

  #ask(
    method: string,
    path: string,
    headers: IncomingMessage["headers"],
    body: readonly Buffer[],
  ): Promise<{ status: number; headers: IncomingMessage["headers"]; body: Buffer }> {
    return new Promise((resolve, reject) => {
      const asked = forward({ port: this.#port, host: "127.0.0.1", method, path, headers }, async (answer) => {
        const pieces: Buffer[] = [];
        for await (const piece of answer) pieces.push(piece as Buffer);
        resolve({ status: answer.statusCode!, headers: answer.headers, body: Buffer.concat(pieces) });
      });
      asked.on("error", reject);
      asked.end(Buffer.concat(body));
    });
  }

  fileSystem(more: Partial<Parameters<typeof s3FileSystem>[0]> = {}) {
    const credentials = { accessKeyId: "S3RVER", secretAccessKey: SECRET };
    return s3FileSystem({ bucket: "bucket", endpoint: this.url, credentials, ...more });
  }
}

/** A server for each test of a file. */
export function s3TestServer(): { server: S3TestServer } {
  const holder = {} as { server: S3TestServer };
  beforeEach(async () => {
    holder.server = new S3TestServer();
    await holder.server.start();
  });
  afterEach(() => holder.server.stop());
  return holder;
}
