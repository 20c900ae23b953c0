/** HTTP by Node's own client, which sends and fills the caller's memory: `fetch` copies both, and the copies are freed late. */
import { once } from "node:events";
import { type ClientRequest, request as http, type IncomingMessage } from "node:http";
import { request as https } from "node:https";
import type { HttpAnswer, HttpRequest } from "./platform";

/** So much is handed to the socket at once: TLS encrypts into memory of its own. */
const PIECE = 256 << 10;

export function nodeRequest(url: URL, { method, headers, body, into, signal }: HttpRequest): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const failed = (error: unknown) => reject(signal.aborted ? signal.reason : error);
    const length = body === undefined ? {} : { "content-length": body.length };
    const options = { method, headers: { ...headers, ...length }, signal };
    const asked = (url.protocol === "https:" ? https : http)(url, options, (response) => {
      const { statusCode: status = 0, headers } = response;
      const isWanted = into !== undefined && status >= 200 && status < 300;
      const header = (name: string) => headers[name]?.toString();
      (isWanted ? filled(into, response) : whole(response)).then((body) => resolve({ status, header, body }), failed);
    });
    asked.on("error", failed);
    // Its failure is the request's, and told there.
    send(asked, body).catch(() => {});
  });
}

async function send(asked: ClientRequest, body: Uint8Array = new Uint8Array(0)): Promise<void> {
  for (let at = 0; at < body.length; at += PIECE) {
    if (!asked.write(body.subarray(at, at + PIECE))) await once(asked, "drain");
  }
  asked.end();
}

/** As much of `target` as the answer has; what is too much is dropped. */
async function filled(target: Uint8Array, response: IncomingMessage): Promise<Uint8Array> {
  let length = 0;
  for await (const piece of response as AsyncIterable<Uint8Array>) {
    target.set(piece.subarray(0, target.length - length), length);
    length = Math.min(target.length, length + piece.length);
  }
  return target.subarray(0, length);
}

async function whole(response: IncomingMessage): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of response as AsyncIterable<Uint8Array>) pieces.push(piece);
  return Buffer.concat(pieces);
}
