// SPDX-License-Identifier: Apache-2.0
using System.Reflection;

[assembly: AssemblyTitle("SparseKit")]
[assembly: AssemblyDescription("Structured sparsity on float buffers that you own")]
[assembly: AssemblyVersion("0.1.0.0")]
