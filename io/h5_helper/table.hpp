#pragma once
// Columns of tables: members of a list of compounds (PyTables, h5py), named as if the table were a group of them.
#include <optional>
#include <string>

#include "io/h5_helper/h5.hpp"

namespace rowmill::h5 {

struct TableColumn {
  std::string table, member;
};

/// The table and the member that "TABLE/MEMBER" names; without a value if that is an object of its own or nothing.
std::optional<TableColumn> table_column(hid_t file, const std::string& path);

/// A compound in memory that holds only this member, of type `memory_type`.
Id only_member(const std::string& member, hid_t memory_type);

/// The first member that holds numbers, as an example for messages; empty if there is none.
std::string numeric_member(hid_t compound);

}  // namespace rowmill::h5
