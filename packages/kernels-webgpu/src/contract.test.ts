import { contractSuite, useSoftwareVulkan, whyUnavailable } from "@opt/testkit";
import { optimizerRules } from "@opt/testkit/rules";
import { openWebGpuBackend } from "./device/open";

useSoftwareVulkan();
const open = () => openWebGpuBackend();

contractSuite({
  name: "webgpu",
  open,
  dtypes: ["f32"],
  exact: false,
  rules: optimizerRules,
  // The suite's scalars have any sign, eps too: where `sqrt(v) + eps` cancels, the ulp that WGSL allows sqrt and division is magnified.
  tolerances: { rule: { absolute: 1e-6, relative: 1e-4 } },
  skip: await whyUnavailable(open),
});
