import { crc32 } from "node:zlib";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { randomBytes, sampleTensors } from "../../testing/fixtures";
import { readManifest } from "../format/manifest";
import { saveCheckpoint } from "../save/save";
import { crcText, joinCrc32 } from "./crc32";
import { encodeManifest, type Manifest, parseManifest } from "./manifest";

type Members = { [member: string]: unknown };

let manifest: Manifest;
beforeAll(async () => {
  const fileSystem = new MemoryFileSystem();
  const values = { epoch: 3, note: '\u00fc \u2028 "', nested: { list: [1, null, true] } };
  const { path } = await saveCheckpoint("/r", { step: 5, tensors: sampleTensors(1), values }, { world: 2, fileSystem });
  manifest = await readManifest(fileSystem, path);
});

/** A manifest of somebody who can compute checksums too. */
function forged(edit: (raw: Members) => void): Uint8Array {
  const raw = JSON.parse(Buffer.from(encodeManifest(manifest)).toString("utf8"));
  edit(raw);
  delete raw.crc32;
  const body = Buffer.from(JSON.stringify(raw).slice(0, -1));
  return Buffer.concat([body, Buffer.from(`,\n"crc32":"${crcText(crc32(body))}"}\n`)]);
}

describe("a manifest", () => {
  it("round-trips", () => expect(parseManifest(encodeManifest(manifest), "m")).toEqual(manifest));

  it("of many tensors round-trips, is JSON, and shares the lists of tensors that lie alike", () => {
    const [first] = manifest.tensors;
    const tensors = Array.from({ length: 4000 }, (_, i) => ({
      ...first!,
      name: `ü "tensors":[\n${i}`,
      follows: `p${i}`,
    }));
    const long = { ...manifest, tensors, values: { text: '\n"tensors":[\n]', list: [[]] } };
    const bytes = encodeManifest(long);
    expect(bytes.length).toBeGreaterThan(1 << 20);
    const read = parseManifest(bytes, "m");
    expect(read).toEqual(long);
    expect(JSON.parse(new TextDecoder().decode(bytes)).tensors[3999].name).toBe(tensors[3999]!.name);
    expect(read.tensors[7]!.boxes[0]!.offset).toBe(read.tensors[6]!.boxes[0]!.offset);
  });

  it("of no tensors, and one whose tensors are not one a line, round-trip", () => {
    const empty = { ...manifest, tensors: [], files: [] };
    expect(parseManifest(encodeManifest(empty), "m")).toEqual(empty);
    expect(
      parseManifest(
        forged(() => {}),
        "m",
      ),
    ).toEqual(manifest);
  });

  it.each<[string, (text: string) => string]>([
    ["a key twice in a tensor's line", (text) => text.replace('"role":"param"', '"role":"state","role":"param"')],
    ["a key twice in a box", (text) => text.replace('"file":0', '"file":1,"file":0')],
    ["lines without commas", (text) => text.replace("]},\n{", "]}\n{")],
    ["a comma after the last tensor", (text) => text.replace("]}\n]", "]},\n]")],
  ])("with %s is rejected", (_, edit) => {
    const text = new TextDecoder().decode(encodeManifest(manifest));
    const edited = edit(text.slice(0, text.lastIndexOf(',\n"crc32"')));
    expect(text.startsWith(edited)).toBe(false);
    const body = Buffer.from(edited);
    const bytes = Buffer.concat([body, Buffer.from(`,\n"crc32":"${crcText(crc32(body))}"}\n`)]);
    expect(() => parseManifest(bytes, "m")).toThrow(expect.objectContaining({ code: "CORRUPT" }));
  });

  it.each<[string, string, string, unknown]>([
    ["another format", "CORRUPT", "format", "other"],
    ["a newer version", "UNSUPPORTED", "version", 2],
    ["a file above the folder", "REFUSED", "files.0.name", "../other/rank-00000.safetensors"],
    ["an absolute file", "REFUSED", "files.0.name", "/etc/passwd"],
    ["a file with a drive", "REFUSED", "files.0.name", "C:\\file"],
    ["a hidden file", "REFUSED", "files.0.name", ".bashrc"],
    ["a file twice", "CORRUPT", "files.1.name", "rank-00000.safetensors"],
    ["a tensor twice", "CORRUPT", "tensors.1.name", "fc.bias"],
    ["a box in no file", "CORRUPT", "tensors.0.boxes.0.file", 7],
    ["a box outside its file", "CORRUPT", "tensors.0.boxes.0.byteOffset", 1e9],
    ["a box in the header", "CORRUPT", "tensors.0.boxes.0.byteOffset", 0],
    ["a box outside its tensor", "CORRUPT", "tensors.0.boxes.0.offset", [1000]],
    ["a box of a wrong length", "CORRUPT", "tensors.0.boxes.0.byteLength", 7],
    ["an unknown dtype", "CORRUPT", "tensors.0.dtype", "F31"],
    ["a shape that overflows", "CORRUPT", "tensors.0.shape", [2 ** 52, 2 ** 52]],
    ["a negative step", "CORRUPT", "step", -1],
    ["no tensors", "CORRUPT", "tensors", null],
    ["an invalid checksum", "CORRUPT", "tensors.0.boxes.0.crc32", "xyz"],
  ])("with %s is rejected: %s", (_, code, path, value) => {
    const keys = path.split(".");
    const edited = forged((raw) => {
      const owner = keys.slice(0, -1).reduce((at, key) => at[key] as Members, raw);
      expect(owner[keys.at(-1)!]).not.toEqual(value);
      owner[keys.at(-1)!] = value;
    });
    expect(() => parseManifest(edited, "m")).toThrow(expect.objectContaining({ code }));
  });

  it("of any bytes is rejected by code", () => {
    const bytes = encodeManifest(manifest);
    fc.assert(
      fc.property(
        fc.nat(bytes.length - 1),
        fc.integer({ min: 1, max: 255 }),
        fc.nat(bytes.length),
        (at, change, length) => {
          const damaged = bytes.slice(0, Math.max(length, at + 1));
          damaged[at]! ^= change;
          expect(() => parseManifest(damaged, "m")).toThrow(expect.objectContaining({ code: "CORRUPT" }));
        },
      ),
      { seed: 11, numRuns: 2000 },
    );
  });

  it("of any JSON with a right checksum is read or rejected by code, never followed", () => {
    const paths = ["step", "world", "mesh", "files", "tensors", "values"];
    fc.assert(
      fc.property(fc.constantFrom(...paths), fc.jsonValue(), (member, value) => {
        const bytes = forged((raw) => Object.assign(raw, { [member]: value }));
        try {
          parseManifest(bytes, "m");
        } catch (error) {
          expect(error).toMatchObject({ code: expect.stringMatching(/^(CORRUPT|REFUSED)$/) });
        }
      }),
      { seed: 12, numRuns: 1000 },
    );
  });
});

describe("joining checksums", () => {
  it("equals the checksum of the joined bytes", () => {
    fc.assert(
      fc.property(fc.nat(300), fc.nat(300), fc.nat(1e6), (first, second, seed) => {
        const bytes = randomBytes(first + second, seed);
        const [a, b] = [crc32(bytes.subarray(0, first)), crc32(bytes.subarray(first))];
        expect(joinCrc32(a, b, second)).toBe(crc32(bytes));
      }),
      { seed: 13, numRuns: 300 },
    );
  });

  it("works for lengths above 2^32", () => {
    // Appending n zero bytes twice is appending 2n.
    const half = joinCrc32(joinCrc32(0x12345678, 0, 3e9), 0, 3e9);
    expect(half).toBe(joinCrc32(0x12345678, 0, 6e9));
  });
});
