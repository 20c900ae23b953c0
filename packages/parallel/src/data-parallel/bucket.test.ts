/** A bucket on a device whose memory is not the host's: gradients travel as one copy. */
import { init, noGrad, parameter, tensor } from "@opt/core";
import { expect, it, vi } from "vitest";
import { Bucket } from "./bucket";

it("hands out averages behind a parameter that no rank has used", async () => {
  const { backend } = await init("js");
  const view = vi.spyOn(backend, "hostView").mockReturnValue(undefined as never);
  try {
    const [first, unused, last] = [parameter([0, 0]), parameter([0, 0, 0]), parameter([0])];
    first.grad = tensor([2, 4]);
    last.grad = tensor([6]);
    const named = [first, unused, last].map((each, i) => ({ name: `p${i}`, tensor: each }));
    const bucket = new Bucket(named);
    bucket.leave("test", async ([row, ...rest]) => {
      expect(rest).toEqual([]);
      noGrad(() => row!.set(row!.mul(0.5)));
    });
    await bucket.arrive();
    expect([first.grad?.tolist(), unused.grad, last.grad?.tolist()]).toEqual([[1, 2], null, [3]]);
  } finally {
    view.mockRestore();
  }
});
