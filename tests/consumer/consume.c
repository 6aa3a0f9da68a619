/* A C99 consumer: exercises handles, a coupling, an exact selection and a refusal. Exits with the
 * number of the first expectation that fails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sparsekit/sparsekit.h>
#include <stdio.h>
#include <string.h>

/* Row i of the first matrix and row i of the second are one block of 3 + 2 elements. */
static spk_block *coupled_rows(spk_view **first, spk_view **second) {
  int64_t row[2] = {1, -1};
  spk_block *members[2] = {NULL, NULL};
  spk_block *coupling = NULL;
  spk_view_parse(SPK_F32, "(4,3)", first);
  spk_view_parse(SPK_F32, "(4,2):(2,1)", second);
  spk_block_create(*first, 2, row, "first", &members[0]);
  spk_block_create(*second, 2, row, "second", &members[1]);
  spk_block_couple(members, 2, NULL, "rows", &coupling);
  spk_block_release(members[0]);
  spk_block_release(members[1]);
  return coupling;
}

int main(void) {
  float a[12] = {1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0};
  float b[8] = {9, 0, 0, 0, 0, 0, 0, 1};
  spk_buffer leaves[2] = {{a, 12, SPK_F32, SPK_LAYOUT_VIEW, NULL},
                          {b, 8, SPK_F32, SPK_LAYOUT_VIEW, NULL}};
  spk_report report = {sizeof report, 0, 0, 0, 0, 0};
  int64_t two = 2;
  int64_t five = 5;
  spk_view *first = NULL;
  spk_view *second = NULL;
  spk_scope *scope = NULL;
  spk_block *rows = coupled_rows(&first, &second);
  char message[SPK_MESSAGE_SIZE] = "";

  printf("%s\n", spk_build_info());
  if (spk_version() != SPK_VERSION) return 1;
  if (spk_scope_create(rows, 0, NULL, NULL, &scope) != SPK_OK) return 2;
  if (spk_scope_keep_top(NULL, scope, leaves, NULL, 2, &five, 1, NULL, &report) == SPK_OK) return 3;
  if (spk_last_error_copy(message, sizeof message, NULL) == SPK_OK) return 4;
  printf("refused: %s\n", message);
  if (strchr(message, '5') == NULL || a[0] != 1) return 5;
  if (spk_scope_keep_top(NULL, scope, leaves, NULL, 2, &two, 1, NULL, &report) != SPK_OK) return 6;
  if (report.total != 4 || report.requested != 2 || report.achieved != 2) return 7;
  if (a[0] != 1 || a[3] != 0 || a[6] != 0 || a[9] != 4 || b[0] != 9 || b[7] != 1) return 8;
  spk_scope_release(scope);
  spk_block_release(rows);
  spk_view_release(first);
  spk_view_release(second);
  return spk_live_handles() == 0 ? 0 : 9;
}
