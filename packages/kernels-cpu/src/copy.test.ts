/** Copies in the host's memory by the pool's threads. */
import { hostIo } from "@opt/core";
import { expect, it } from "vitest";
import "./index";
import { missingDevice } from "../testing/missing-device";

it.skipIf(missingDevice)(
  `copies every byte and no other, whatever the length, to shared memory too${missingDevice ?? ""}`,
  () => {
    const source = Uint8Array.from({ length: (3 << 20) + 100 }, (_, i) => 1 + (Math.imul(i, 2_654_435_761) >>> 25));
    for (const length of [0, 1, 4095, 1 << 20, (1 << 20) + 1, 3 << 20, source.length - 1]) {
      for (const memory of [new ArrayBuffer(length + 2), new SharedArrayBuffer(length + 2)]) {
        const whole = new Uint8Array(memory);
        hostIo().copy!(whole.subarray(1, 1 + length), source.subarray(1, 1 + length));
        expect(Buffer.compare(whole.subarray(1, 1 + length), source.subarray(1, 1 + length))).toBe(0);
        expect([whole[0], whole[length + 1]]).toEqual([0, 0]);
      }
    }
  },
);
