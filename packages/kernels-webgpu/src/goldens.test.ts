// The optimizers against PyTorch's numbers: within 1e-6 + 1e-5 |x| after 25 steps.
import { init } from "@opt/core";
import { goldenSuite, triesAll, useSoftwareVulkan, whyUnavailable } from "@opt/testkit";
import { optimizerClasses } from "@opt/testkit/optimizers";
import { describe, it } from "vitest";
import { openWebGpuBackend } from "./index";

useSoftwareVulkan();
const reason = await whyUnavailable(() => openWebGpuBackend());

if (reason === undefined) {
  const optimizers = await optimizerClasses();
  goldenSuite({ name: "webgpu", optimizers, exact: false, sampled: !triesAll, device: () => init("webgpu") });
} else {
  describe(`goldens on webgpu (skipped: ${reason})`, () => {
    it("keeps to PyTorch's numbers", ({ skip }) => skip(reason));
  });
}
