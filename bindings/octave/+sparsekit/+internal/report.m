% SPDX-License-Identifier: Apache-2.0

% report(NUMBERS) names the numbers of a report.
function named = report(numbers)
  named = struct("total", numbers(1), "requested", numbers(2), "achieved", numbers(3), ...
                 "ties", numbers(4), "not_converged", numbers(5));
end
