/** What ranks write in a terminal: each line with the number of its rank, whole. */
import type { Readable } from "node:stream";

/** Hands on the lines of a stream, each behind `prefix`; one without an end when the stream ends. */
export function prefixLines(stream: Readable, prefix: string, write: (text: string) => void): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) write(`${prefix}${line}\n`);
  });
  stream.on("end", () => {
    if (rest !== "") write(`${prefix}${rest}\n`);
  });
}
