/**
 * HTTP as Node speaks it: a body leaves from the caller's memory and arrives in it. `fetch` copies what is sent and each piece that arrives,
 * and the collector comes for the copies late.
 */
import { once } from "node:events";
import { type ClientRequest, request as http, type IncomingMessage } from "node:http";
import { request as https } from "node:https";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
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
    drop(piece.length);
  }
  return target.subarray(0, length);
}

async function whole(response: IncomingMessage): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of response as AsyncIterable<Uint8Array>) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** Pieces from sockets die young, and V8 notices late what memory they hold: it is told when so many bytes lie. */
const LYING = 8 << 20;

type Collect = (options: { type: "minor" }) => void;

let dropped = 0;
let collect: Collect | null | undefined;

/** Counts memory that has just been dropped, and collects the young generation, about a millisecond, when it is much. */
function drop(bytes: number): void {
  dropped += bytes;
  if (dropped < LYING) return;
  dropped = 0;
  if (collect === undefined) collect = found();
  collect?.({ type: "minor" });
}

/** V8 gives `gc` to contexts that are made while the flag is up; a context of its own gets it, and nobody else. Null on other engines. */
function found(): Collect | null {
  try {
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc") as Collect;
    setFlagsFromString("--no-expose-gc");
    return gc;
  } catch {
    return null;
  }
}
