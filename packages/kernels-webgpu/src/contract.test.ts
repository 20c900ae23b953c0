import { contractSuite, useSoftwareVulkan, whyUnavailable } from "@opt/testkit";
import { workspaceRules } from "@opt/testkit/rules";
import { openWebGpuBackend } from "./device/open";

useSoftwareVulkan();
// Workgroups as GPUs have them, in grids of so few a dimension that most launches have two, with workgroups to spare.
const open = () => openWebGpuBackend({ grid: 3, software: false });

// sqrt(v - g * g) of the suite's unrelated v and g cancels: no bound on the result follows from the ulps that WGSL allows before it.
const rules = (await workspaceRules()).filter(({ name }) => !name.includes("Centered"));

contractSuite({
  name: "webgpu",
  open,
  dtypes: ["f32", "i32"],
  exact: false,
  rules,
  // The suite's scalars have any sign, eps too: where `sqrt(v) + eps` cancels, the ulp that WGSL allows sqrt and division is magnified.
  tolerances: { rule: { absolute: 1e-6, relative: 1e-4 } },
  skip: await whyUnavailable(open),
});
