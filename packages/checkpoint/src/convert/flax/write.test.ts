import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { flaxFile } from "../../../testing/files/flax";
import { scratchFolder } from "../../../testing/fixtures";
import { sourceOf } from "../../../testing/source-of";
import { usingSource } from "../../../testing/using-source";
import { convertCheckpoint } from "../convert";
import { writeFlax } from "./write";

const scratch = scratchFolder();

it("writes arrays as flax does", async () => {
  const out = join(scratch.path, "out.msgpack");
  await convertCheckpoint(flaxFile("whole"), out, { to: "msgpack" });
  expect(readFileSync(out).equals(readFileSync(flaxFile("whole")))).toBe(true);
});

it("writes large arrays in chunks as flax does", async () => {
  const out = join(scratch.path, "out.msgpack");
  await usingSource(flaxFile("whole"), (source) => writeFlax(source, out, { largestChunk: 100 }));
  expect(readFileSync(out).equals(readFileSync(flaxFile("chunked")))).toBe(true);
});

it.each([
  ["fc.bias", "fc.bias.exp_avg"],
  ["fc.bias.exp_avg", "fc.bias"],
])("rejects %s beside %s", async (...names) => {
  const one = { shape: [1], data: new Float32Array(1) };
  const source = sourceOf(Object.fromEntries(names.map((name) => [name, one])));
  await expectCode("DUPLICATE", writeFlax(source, join(scratch.path, "x.msgpack")));
});
