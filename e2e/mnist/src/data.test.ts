import { describe, expect, it } from "vitest";
import { loadMnist } from "./data";

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
