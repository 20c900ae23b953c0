import { roomsTest } from "@opt/testkit/rooms";

roomsTest(new URL(".", import.meta.url), [
  "layout",
  "plan",
  "stores",
  "platform",
  ...["bucket", "remote"],
  "format",
  // Our own checkpoints, written.
  ...["save/step", "save/shards", "save/ranks", "save"],
  // Readers of other systems' files.
  ...["formats/bytes", "formats/zip", "formats/python", "formats/names"],
  [
    "formats/flax",
    "formats/gguf",
    "formats/keras",
    "formats/mindspore",
    "formats/numpy",
    "formats/orbax",
    "formats/paddle",
    "formats/safetensors",
    "formats/tfjs",
    "formats/torch",
  ],
  "formats",
  // What reads any checkpoint, and what writes it anew: in our format, then in those of other systems.
  ...["read", "naming", "rewrite"],
  ...["convert/files", "convert/python", "convert/zip"],
  ["convert/flax", "convert/mindspore", "convert/numpy", "convert/safetensors", "convert/torch"],
  ...["convert", "compare", "explain"],
  "ledger",
  "command",
]);
