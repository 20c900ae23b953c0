import { describe, expect, it } from "vitest";
import { loadMnist, parseIdx } from "./data";

describe("MNIST", () => {
  const { training, test } = loadMnist();

  it("has its 60,000 and 10,000 images", () => {
    expect([training.count, test.count]).toEqual([60_000, 10_000]);
    expect([training.pixels.length, test.pixels.length]).toEqual([60_000 * 784, 10_000 * 784]);
  });

  it("begins with the labels that everybody knows", () => {
    expect([...training.labels.subarray(0, 10)]).toEqual([5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
    expect([...test.labels.subarray(0, 5)]).toEqual([7, 2, 1, 0, 4]);
  });
});

describe("parseIdx", () => {
  it("reads shape and data", () => {
    const { shape, data } = parseIdx(Uint8Array.of(0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 3, 7, 8, 9));
    expect([shape, [...data]]).toEqual([
      [1, 3],
      [7, 8, 9],
    ]);
  });

  it("refuses another type, and missing bytes", () => {
    expect(() => parseIdx(Uint8Array.of(0, 0, 13, 1, 0, 0, 0, 0))).toThrow(/not an idx file of bytes/);
    expect(() => parseIdx(Uint8Array.of(0, 0, 8, 1, 0, 0, 0, 2, 7))).toThrow(/needs 2 bytes, got 1/);
  });
});
