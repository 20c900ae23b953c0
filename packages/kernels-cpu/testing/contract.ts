/** The contract suite of the cpu device with one instruction set. Three threads: more than small machines have cores. */
import { FUSED_KINDS } from "@opt/core/backend";
import { contractSuite, whyUnavailable } from "@opt/testkit";
import { builtRules } from "@opt/testkit/built-rules";
import { openCpuBackend } from "../src/backend";

export async function cpuContract(instructionSet?: string): Promise<void> {
  const open = async () => openCpuBackend({ ...(instructionSet && { instructionSet }), threads: 3 });
  const skip = await whyUnavailable(open);
  contractSuite({
    name: "cpu",
    open,
    dtypes: ["f32", "f64"],
    rules: builtRules,
    fuses: FUSED_KINDS,
    epilogues: true,
    hostKernels: true,
    skip,
  });
}
