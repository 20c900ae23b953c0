import { Readable } from "node:stream";
import fc from "fast-check";
import { expect, it } from "vitest";
import { RankLines } from "./lines";

const piece = fc.stringMatching(/^[a-c\n]{0,4}$/);

it("each line is whole, however a stream is cut, the last one also without an end", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 5 }), async (pieces) => {
      const written: string[] = [];
      const stream = Readable.from(pieces.map((text) => Buffer.from(text)));
      const ended = new Promise((resolve) => stream.once("end", resolve));
      new RankLines((text) => written.push(text)).follow(stream, 3);
      await ended;
      const lines = pieces.join("").split("\n");
      expect(written).toEqual((lines.at(-1) === "" ? lines.slice(0, -1) : lines).map((line) => `[3] ${line}\n`));
    }),
    { seed: 1, numRuns: 50 },
  );
});
