import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { scratchFolder } from "../../../testing/fixtures";
import { sourceOf } from "../../../testing/source-of";
import { openForeign } from "../../formats/registry";
import { underOurNames } from "../../naming/names";
import { localFileSystem } from "../../platform/local";
import { writeMindspore } from "./write";

const SAMPLES = join(fileURLToPath(new URL("../../../../../..", import.meta.url)), "shared/samples/mindspore");
const REAL = [
  "mindpet_checkpoint_base-1_3.ckpt",
  "ythlml_checkpoint_lenet-1_1875.ckpt",
  "goldenstick_test_linears_woq_predict_2stage_fp32.ckpt",
  "goldenstick_test_sq_predict_simplenet_2stage_fp.ckpt",
];
const present = existsSync(SAMPLES);

const scratch = scratchFolder();

describe.skipIf(!present)(`real files${present ? "" : " (../shared/samples is not here)"}`, () => {
  it.each(REAL)("writes %s again byte for byte, and so through our names for states", async (name) => {
    const original = readFileSync(join(SAMPLES, name));
    const source = await openForeign(join(SAMPLES, name), localFileSystem);
    await writeMindspore(source, join(scratch.path, "again.ckpt"), { maxMemory: 64 << 10 });
    expect(readFileSync(join(scratch.path, "again.ckpt")).equals(original)).toBe(true);
    const ours = await underOurNames(source);
    await writeMindspore(
      { ...ours, tensors: new Map([...ours.tensors].filter(([key]) => !key.endsWith(".step"))) },
      join(scratch.path, "named.ckpt"),
    );
    expect(sha256(join(scratch.path, "named.ckpt"))).toBe(createHash("sha256").update(original).digest("hex"));
    await source.close();
  });
});

function sha256(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

describe("writeMindspore", () => {
  it("splits large tensors as numpy.array_split does, and reads them joined", async () => {
    const numbers = Float32Array.from({ length: 35 }, (_, i) => i / 7);
    const path = join(scratch.path, "split.ckpt");
    await writeMindspore(sourceOf({ w: { shape: [5, 7], data: numbers } }), path, { largestPiece: 48, crc: true });
    // 140 bytes in pieces of at most 48 are three: 12, 12 and 11 elements.
    expect(
      readFileSync(path)
        .toString("latin1")
        .match(/Float32/g),
    ).toHaveLength(3);
    const source = await openForeign(path, localFileSystem);
    const [box] = source.tensors.get("w")!.boxes;
    const bytes = new Uint8Array(140);
    await box!.read(bytes, 0);
    expect(new Float32Array(bytes.buffer)).toEqual(numbers);
    await source.close();
  });

  it("keeps empty tensors and scalars in their places", async () => {
    const path = join(scratch.path, "odd.ckpt");
    const tensors = {
      empty: { shape: [0, 3], data: new Float32Array(0) },
      scalar: { shape: [], data: Float32Array.of(2) },
      last: { shape: [0], data: new Float32Array(0) },
    };
    await writeMindspore(sourceOf(tensors), path);
    const source = await openForeign(path, localFileSystem);
    expect([...source.tensors.values()].map(({ name, shape }) => [name, shape])).toEqual([
      ["empty", [0, 3]],
      ["scalar", []],
      ["last", [0]],
    ]);
    await source.close();
  });

  it("rejects a dtype that MindSpore has not, and leaves nothing behind", async () => {
    const path = join(scratch.path, "f8.ckpt");
    const source = sourceOf({ w: { shape: [4], data: new Uint8Array(4), dtype: "F8_E4M3" } });
    await expectCode("UNSUPPORTED", writeMindspore(source, path));
    expect(existsSync(path)).toBe(false);
  });
});
