/** The processor's checksums are zlib's. */
import { crc32 } from "node:zlib";
import { hostCrc32, init } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import "./index";
import { loadAddon } from "./load-addon";
import { missingDevice } from "./testing/missing-device";
import { someBytes } from "./testing/some-bytes";

const missing =
  missingDevice ?? (loadAddon().crc32 ? undefined : " (skipped: the processor has no instruction for them)");

describe.skipIf(missing)(`cpu checksums${missing ?? ""}`, () => {
  it("are those of zlib for each length, wherever they begin and whatever came before", async () => {
    await init("cpu");
    const bytes = someBytes(2500);
    for (let length = 0; length <= 2400; length++) {
      const piece = bytes.subarray(length % 17, (length % 17) + length);
      for (const before of [0, 1, 0xffffffff, 0x80000001]) {
        expect(hostCrc32(piece, before), `${length} bytes after ${before}`).toBe(crc32(piece, before));
      }
    }
  });

  it("are those of zlib for long pieces, and go on from one to the next", async () => {
    await init("cpu");
    const bytes = someBytes(3_000_001);
    const [first, second] = [bytes.subarray(0, 1_234_567), bytes.subarray(1_234_567)];
    expect(hostCrc32(second, hostCrc32(first))).toBe(crc32(bytes));
    expect(hostCrc32(new Uint8Array(0))).toBe(0);
  });

  it("are taken of bytes alone", async () => {
    await init("cpu");
    for (const wrong of [undefined, "bytes", new ArrayBuffer(8), new Float32Array(8)])
      expectCode("BAD_ARGUMENT", () => hostCrc32(wrong as unknown as Uint8Array));
  });
});
