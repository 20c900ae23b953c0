// The optimizers against PyTorch's numbers: within 1e-6 + 1e-5 |x| after 25 steps.
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { init } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { goldenSuite, useSoftwareVulkan, whyUnavailable } from "@opt/testkit";
import { describe, it } from "vitest";
import { openWebGpuBackend } from "./index";

useSoftwareVulkan();
const reason = await whyUnavailable(() => openWebGpuBackend());

if (reason === undefined) {
  goldenSuite({ name: "webgpu", optimizers: { NAdam, Adam, AdamW }, exact: false, device: () => init("webgpu") });
} else {
  describe(`goldens on webgpu (skipped: ${reason})`, () => {
    it("keeps to PyTorch's numbers", ({ skip }) => skip(reason));
  });
}
