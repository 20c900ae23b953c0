import { OptError } from "@opt/core";
import { describe, expect, it } from "vitest";
import { expectCode } from "./expect-code";

const reject = () => {
  throw new OptError("BAD_SHAPE", "test", "shapes must fit, got [2].");
};

describe("expectCode", () => {
  it("accepts the code, thrown or rejected", async () => {
    expectCode("BAD_SHAPE", reject);
    await expectCode("BAD_SHAPE", async () => reject());
  });

  it("fails on another code, on no error and on a foreign error", async () => {
    expect(() => expectCode("BAD_DTYPE", reject)).toThrow("expected an OptError BAD_DTYPE, got BAD_SHAPE");
    expect(() => expectCode("BAD_DTYPE", () => 1)).toThrow("nothing was thrown");
    await expect(expectCode("BAD_DTYPE", async () => 1)).rejects.toThrow("nothing was thrown");
    expect(() => expectCode("BAD_DTYPE", () => (undefined as never as { x: number }).x)).toThrow(TypeError);
  });
});
