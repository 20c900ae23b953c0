import { expect, it } from "vitest";
import { finalLoss, formatTable, resultTable } from "./table";

it("aligns names left and numbers right", () => {
  const table = resultTable([
    { optimizer: "NAdam", losses: [2, 1], accuracies: [0.9, 0.98765], seconds: 12.34, imagesPerSecond: 14_567.8 },
  ]);
  expect(formatTable(table)).toBe(
    [
      "optimizer   final loss   test accuracy   seconds   images/s",
      "───────────────────────────────────────────────────────────",
      "NAdam           1.5000         98.77 %      12.3     14,568",
    ].join("\n"),
  );
});

it("the final loss is the mean of the last steps", () => expect(finalLoss([9, 1, 2, 3], 3)).toBe(2));
