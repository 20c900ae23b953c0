import { describe, expect, it } from "vitest";
import { loadMnist } from "./data";

describe("MNIST", () => {
  const { training, test } = loadMnist();

  it("has its 60,000 and 10,000 images", () => {
    expect([training.length, test.length]).toEqual([60_000, 10_000]);
    expect(test.get(9_999).map(({ shape }) => shape)).toEqual([[28, 28], []]);
  });

  it("begins with the labels that everybody knows", () => {
    const labels = (digits: typeof training) => digits.batch(Int32Array.of(0, 1, 2, 3, 4))[1].tolist();
    expect([labels(training), labels(test)]).toEqual([
      [5, 0, 4, 1, 9],
      [7, 2, 1, 0, 4],
    ]);
  });
});
