package inside
