import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { openJsBackend } from "../js/backend";
import { hostCopy } from "./host-copy";
import { init, registerBackend } from "./registry";

const isEqual = (a: Uint8Array, b: Uint8Array) => a.every((byte, i) => byte === b[i]);

it("is the default device's where it has threads, the bytes are many and share none", async () => {
  const lengths: number[] = [];
  const copyBytes = (target: Uint8Array, source: Uint8Array) => {
    lengths.push(source.length);
    target.set(source);
  };
  registerBackend({ name: "copies", rank: -1, load: async () => Object.assign(openJsBackend(), { copyBytes }) });
  const device = await init("copies");
  const bytes = Uint8Array.from({ length: 3 << 20 }, (_, i) => i);
  const [few, many] = [bytes.subarray(0, 1000), bytes.slice(0, 2 << 20)];
  for (const source of [few, many]) {
    const target = new Uint8Array(source.length);
    hostCopy(target, source);
    expect(isEqual(target, source)).toBe(true);
  }
  hostCopy(bytes.subarray(0, 2 << 20), bytes.subarray(1 << 20));
  expect([bytes[5], bytes[(2 << 20) - 1]]).toEqual([(5 + (1 << 20)) % 256, 255]);
  await device.close();
  hostCopy(bytes.subarray(0, 2 << 20), many);
  expect(isEqual(bytes.subarray(0, 2 << 20), many)).toBe(true);
  expect(lengths).toEqual([2 << 20]);
});

it("is of bytes, as many here as there", () => {
  const bytes = new Uint8Array(8);
  for (const wrong of [undefined, "bytes", new ArrayBuffer(8), new Float32Array(8)]) {
    expectCode("BAD_ARGUMENT", () => hostCopy(wrong as unknown as Uint8Array, bytes));
    expectCode("BAD_ARGUMENT", () => hostCopy(bytes, wrong as unknown as Uint8Array));
  }
  expectCode("BAD_SHAPE", () => hostCopy(bytes, new Uint8Array(9)));
});
