/** The processor's checksums are zlib's. */
import { crc32 } from "node:zlib";
import { hostIo } from "@opt/core";
import { describe, expect, it } from "vitest";
import "./index";
import { missingDevice } from "../testing/missing-device";
import { someBytes } from "../testing/some-bytes";
import { loadAddon } from "./load-addon";

const missing =
  missingDevice ?? (loadAddon().crc32 ? undefined : " (skipped: the processor has no instruction for them)");

const crc32Of = (bytes: Uint8Array, before: number) => hostIo().crc32!(bytes, before);

describe.skipIf(missing)(`cpu checksums${missing ?? ""}`, () => {
  it("are those of zlib for each length, wherever they begin and whatever came before", () => {
    const bytes = someBytes(2500);
    for (let length = 0; length <= 2400; length++) {
      const piece = bytes.subarray(length % 17, (length % 17) + length);
      for (const before of [0, 1, 0xffffffff, 0x80000001]) {
        expect(crc32Of(piece, before), `${length} bytes after ${before}`).toBe(crc32(piece, before));
      }
    }
  });

  it("are those of zlib for long pieces, and go on from one to the next", () => {
    const bytes = someBytes(3_000_001);
    const [first, second] = [bytes.subarray(0, 1_234_567), bytes.subarray(1_234_567)];
    expect(crc32Of(second, crc32Of(first, 0))).toBe(crc32(bytes));
    expect(crc32Of(new Uint8Array(0), 0)).toBe(0);
  });
});
