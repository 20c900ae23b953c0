import { expect, it } from "vitest";
import type { Candidate } from "../format/source";
import { unreadKind } from "./unread";

const file = (name: string, head: string | Uint8Array, members?: string[]): Candidate => ({
  path: name,
  name,
  kind: "file",
  head: Buffer.from(head),
  byteLength: head.length,
  entries: [],
  members,
});
const folder = (...names: string[]): Candidate => ({
  ...file("run", ""),
  kind: "folder",
  entries: names.map((name) => ({ name, kind: "file" as const })),
});

it.each<[Candidate, RegExp]>([
  [file("model.pt", "version https://git-lfs.github.com/spec/v1\noid sha256:"), /Git LFS/],
  [file("model.safetensors", "\n<html><head>"), /HTML/],
  [folder("saved_model.pb", "keras_metadata.pb"), /SavedModel/],
  [folder("model.ckpt-5.index", "checkpoint"), /TensorFlow/],
  [file("net.onnx", "\x08\x08"), /ONNX/],
  [file("a.pt.gz", Uint8Array.of(0x1f, 0x8b, 8)), /gzip/],
  [file("a.zst", Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd)), /zstd/],
  [file("asr.nemo", "./config"), /tar/],
  [file("data.pkl", Uint8Array.of(0x80, 4, 0x95)), /pickle/],
  [file("data.zip", "PK\x03\x04", ["a.txt"]), /zip/],
])("names what it cannot read (%#)", (candidate, what) => {
  expect(unreadKind(candidate)?.what).toMatch(what);
});

it("says nothing of what it does not know", () => {
  expect(unreadKind(file("data.bin", Uint8Array.of(1, 2, 3)))).toBeUndefined();
});
