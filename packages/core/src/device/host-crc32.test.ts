import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { openJsBackend } from "../js/backend";
import { hostCrc32 } from "./host-crc32";
import { init, registerBackend } from "./registry";

it("is the default device's, and undefined where that has none", async () => {
  const crc32 = (bytes: Uint8Array, before: number) => bytes.length + before;
  registerBackend({ name: "checksums", rank: -1, load: async () => Object.assign(openJsBackend(), { crc32 }) });
  const device = await init("checksums");
  expect([hostCrc32(new Uint8Array(3)), hostCrc32(new Uint8Array(3), 4)]).toEqual([3, 7]);
  await device.close();
  expect(hostCrc32(new Uint8Array(3))).toBeUndefined();
});

it("is of bytes", () => {
  for (const wrong of [undefined, "bytes", new ArrayBuffer(8), new Float32Array(8)])
    expectCode("BAD_ARGUMENT", () => hostCrc32(wrong as unknown as Uint8Array));
});
