import { contractSuite, whyUnavailable } from "@opt/testkit";
import { optimizerRules } from "@opt/testkit/rules";
import { openWebGpuBackend } from "./device/open";

const open = () => openWebGpuBackend();

contractSuite({
  name: "webgpu",
  open,
  dtypes: ["f32"],
  exact: false,
  rules: optimizerRules,
  skip: await whyUnavailable(open),
});
